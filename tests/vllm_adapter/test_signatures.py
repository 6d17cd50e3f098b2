"""The adapter's calls for each release of vLLM, by the signatures of its real wheels."""

import asyncio
import importlib
from types import SimpleNamespace

import pytest

from rlprof import Target, Window
from rlprof_engine.requests import TIMES
from rlprof_vllm._engine import reach
from rlprof_vllm._launch import engine_launch
from rlprof_vllm._native import Native
from rlprof_vllm._options import Iterations, VllmOptions
from tests.cases import cases
from tests.signatures.record import number
from tests.vllm_adapter import signatures
from tests.vllm_adapter.generations import SAID, engine

RELEASES = sorted(SAID, key=number)
KINDS = ("AsyncLLM", "LLM")
WINDOW = Window(7, 8, "rollout")
CHOSEN = Iterations(count=5, skip=2)

PLAIN = {"with_stack": False, "record_shapes": False, "profile_memory": False, "with_flops": False}
"""The contents that vLLM 0.33 gets for a window that asks for none."""

every_release = pytest.mark.parametrize("release", RELEASES)
every_kind = pytest.mark.parametrize("kind", KINDS)


def started(handle, iterations, contents=()):
    """Start a window by vLLM's own profiler; return what it was called with, and the Native."""
    native = Native(reach(handle, ""), VllmOptions(iterations=iterations), contents)
    asyncio.run(native.start(WINDOW, "run-1"))
    (given,) = handle.called("start_profile")
    return given, native


def test_releases_of_every_generation_are_known():
    """The record has ten releases or more, from 0.13 to 0.33."""
    numbers = {number(release)[:2] for release in SAID}

    assert set(signatures.RELEASES) == set(SAID)
    assert len(numbers) >= 10
    assert {(0, 13), (0, 16), (0, 17), (0, 31), (0, 32), (0, 33)} <= numbers


@every_release
def test_the_names_that_the_adapter_uses_exist(release):
    """Each release has the plugin group, the wrapper, the request states and attributes in use."""
    said = SAID[release]

    assert said["plugin_group"]
    assert said["WorkerWrapperBase"]
    assert said["request_states.pop"]
    assert {*TIMES, "arrival_time", "num_generation_tokens"} <= set(said["RequestStateStats"])
    assert {"errored", "output_handler", "output_processor", "vllm_config"} <= set(
        said["AsyncLLM.attributes"]
    )
    body = said["POST /start_profile"]["body"]
    assert (number(release) >= (0, 32)) == (body is not None)
    assert {"profile_prefix", *BY_LAUNCH} <= set(body or {}) or not body


WHOLE, BY_LAUNCH = {"delay_iterations": 0, "max_iterations": 0}, {"delay_iterations": 3,
                                                                   "max_iterations": 5}  # fmt: skip


@every_kind
@every_release
@cases(
    "row",
    ({}, None, ({}, "")),
    ({}, CHOSEN, (BY_LAUNCH, None)),
    (BY_LAUNCH, CHOSEN, (BY_LAUNCH, "by the launch, the same for all windows")),
    ({"max_iterations": 5}, None, (WHOLE, None)),
    ids=["whole", "counted", "as launched", "whole, launched to count"],
)
def test_a_window_is_started_in_the_words_of_the_release(release, kind, tmp_path, row):
    """Since 0.32 a session has its own prefix and counts; before, the launch fixes them."""
    launched, chosen, (given_now, applied_before) = row
    handle = engine(release, kind, directory=tmp_path, launched=launched)

    given, native = started(handle, chosen)

    prefix, kwargs = given.pop("profile_prefix", None), given.pop("profiler_kwargs", None)
    assert kwargs == (PLAIN if number(release) >= (0, 33) else None)
    found = {name: value for name, value in given.items() if value is not None}
    if number(release) >= (0, 32):
        assert prefix.startswith("rlprof_step7_run-1_")
        assert (found, native.unsupported) == (given_now, {})
    else:
        assert (prefix, found) == (None, {})
        assert native.applied.get("iterations", "") == (applied_before or "")
        assert ("iterations" in native.unsupported) is (applied_before is None)


@every_kind
@every_release
def test_contents_are_those_of_the_window_or_unsupported(release, kind, tmp_path):
    """Since 0.33 a window has its own contents; before, those of the launch apply."""
    launched = {"torch_profiler_with_stack": True, "torch_profiler_record_shapes": False}
    handle = engine(release, kind, directory=tmp_path, launched=launched)

    given, native = started(handle, None, contents=["shapes"])

    if number(release) >= (0, 33):
        assert given["profiler_kwargs"] == PLAIN | {"record_shapes": True}
        assert (native.unsupported, native.applied) == ({}, {})
    else:
        assert "profiler_kwargs" not in given
        why = "the engine was launched without it"
        assert native.unsupported == {"contents: shapes": why}
        assert native.applied == {"more": ["stack"]}


LIGHT = {
    "profiler": "torch",
    "torch_profiler_dir": "/traces",
    "torch_profiler_with_stack": False,
    "torch_profiler_record_shapes": False,
    "torch_profiler_with_memory": False,
    "torch_profiler_with_flops": False,
    "torch_profiler_use_gzip": False,
    "torch_profiler_dump_cuda_time_total": False,
    "ignore_frontend": True,
}


@every_release
def test_an_engine_is_launched_light(release, tmp_path, monkeypatch):
    """The launch turns off stacks, gzip, tables and the frontend, without an import of vLLM."""
    package = tmp_path / "site" / "vllm"
    (package / "config").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('importing it takes seconds')\n")
    (package / "envs.py").touch()
    lines = [f"    {name}: object = {v}" for name, v in SAID[release]["ProfilerConfig"].items()]
    text = "\n".join(["class ProfilerConfig:", *lines, ""])
    (package / "config" / "profiler.py").write_text(text)
    monkeypatch.syspath_prepend(package.parent)
    importlib.invalidate_caches()
    options = VllmOptions(profiler_dir="/traces", way="native")

    made = engine_launch(options, Target("rollout", replica=0), {"torch": {"contents": []}})

    assert made.engine_args == {"disable_log_stats": False, "profiler_config": LIGHT}
    assert made.env == {}


@pytest.mark.parametrize("release", [name for name in RELEASES if number(name) >= (0, 32)])
def test_on_npus_the_newest_words_are_not_used(release, tmp_path):
    """On NPUs the counts and contents of a window are unsupported, and no argument is given."""
    handle = engine(release, "AsyncLLM", directory=tmp_path)
    handle.vllm_config.device_config = SimpleNamespace(device_type="npu")

    given, native = started(handle, CHOSEN, ("shapes", "stack", "memory"))

    assert not any(given.values())
    told = {"iterations", *(f"contents: {word}" for word in ("shapes", "stack", "memory"))}
    assert set(native.unsupported) == told
    assert "modules" in native.unsupported["contents: stack"]
