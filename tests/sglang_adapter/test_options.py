"""What the engine `sglang` can be asked, and what is said of the rest, before a run begins."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_engine.iterations import Iterations
from rlprof_sglang import SglangOptions
from rlprof_sglang._facts import Facts
from rlprof_sglang._request import Request
from rlprof_sglang._ways import sleepless, unasked, way
from rlprof_sglang._words import SWITCH
from tests.cases import cases

STACKS = ("iterations: needs {count: N}, because tools.torch.contents has stack: an idle "
          "scheduler writes up to two million events a second")  # fmt: skip
DIES = ("by_stage needs iterations: {count: N}, the steps of each stage; without it SGLang's "
        "scheduler dies at its next prefill")  # fmt: skip
UNKNOWN = "'gpu' is not one of CPU, GPU, XPU, MEM, CUDA_PROFILER"
EMPTY = "is empty, and SGLang would record nothing; leave it out for CPU and GPU"
VERLS = "step_start and step_end are verl's names for iterations; use one or the other"
REVERSED = "step_end: 5 is not after step_start: 5; the first step is 1"
INSIDE = "by_stage: SGLang's own profiler does that; leave out way: worker"
BY_STAGE = {"by_stage": True, "iterations": {"count": 2}}


@cases(
    "options, contents, why",
    ({"activities": ["CPU", "gpu"]}, [], UNKNOWN),
    ({"activities": []}, [], EMPTY),
    ({"by_stage": True}, [], DIES),
    ({"step_start": 1, "iterations": {"count": 2}}, [], VERLS),
    ({"step_start": 5, "step_end": 5}, [], REVERSED),
    ({"way": "worker"} | BY_STAGE, [], INSIDE),
    ({}, ["stack"], f"config: engines.sglang: {STACKS}"),
)
def test_what_cannot_be_is_refused_before_the_run(options, contents, why):
    """With one sentence that says what to write instead."""
    roles, tools = {"rollout": {"engine": "sglang", "tool": "torch"}}, {"contents": contents}
    config = {"steps": [1], "roles": roles, "engines": {"sglang": options}}
    config |= {"tools": {"torch": tools}} if contents else {}

    with pytest.raises(rlprof.ConfigError) as raised:
        rlprof.launch(config, role="rollout")

    (fault,) = raised.value.faults
    assert why in fault
    assert fault == why or not contents
    assert "engines.sglang" in fault


def test_the_key_of_a_server_is_not_shown():
    """What is logged or raised holds options, and no secrets."""
    assert "hunter2" not in repr(SglangOptions(admin_api_key="hunter2"))


BOTH, TEN = ["CPU", "GPU"], Iterations(10)
ROWS = {
    "defaults": ({}, None, {}, ""),
    "start and end": ({"step_start": 0, "step_end": 1}, Iterations(1), {}, "step_start"),
    "start alone": ({"step_start": 3}, Iterations(None, 2), {}, "step_start"),
    "end alone": ({"step_end": 1}, Iterations(1), {}, "step_end"),
    "by stage": ({"contents": ("profile-by-stage",)}, TEN, {"profile_by_stage": True},
                 "iterations"),
    "merged": ({"contents": ("merge-profiles",)}, None, {"merge_profiles": True}, ""),
    "stacks": ({"contents": ("stack",)}, TEN, {"with_stack": True}, "iterations"),
    "shapes": ({"contents": ("shapes",)}, None, {"record_shapes": True}, ""),
    "cpu": ({"contents": ("cpu",)}, None, {"activities": ["CPU"]}, ""),
    "cuda": ({"contents": ("cuda",)}, None, {"activities": ["GPU"]}, ""),
    "memory": ({"contents": ("memory",)}, None, {"activities": [*BOTH, "MEM"]}, ""),
    "no contents": ({"contents": ()}, None, {}, ""),
}  # fmt: skip
"""verl's options (verl-project/verl #5025): the steps, what is asked, what is read otherwise."""


@pytest.mark.parametrize("row", ROWS.values(), ids=[*ROWS])
def test_verls_options_are_asked_of_sglang(row):
    """Neither stacks nor shapes where nothing is said; tests/sglang_real records some of them."""
    asked, steps, sent, told = row
    options = SglangOptions(**asked)
    request = Request(options, Facts("Engine", device="cuda"), {})
    window, target = rlprof.Window(7, 8, "rollout"), rlprof.Target("rollout", replica=1)

    fields = request.fields(Path("/traces"), window, target)

    plain = {"output_dir": "/traces", "activities": BOTH, "with_stack": False,
             "record_shapes": False, "profile_id": "gs7-r1"}  # fmt: skip
    count = steps and steps.count
    assert fields == plain | sent | ({"num_steps": count} if count else {})
    assert options.chosen({}) == steps
    found = options.foreign({})
    assert [*found] == ([told] if told else [])
    count = f", count: {steps.count}" if steps and steps.count else ""
    assert not told.startswith("step") or f"{{skip: {steps.skip}{count}}}" in found[told]
    per_stage = request.applied.get("iterations", {}).get("of") == "each stage"
    assert per_stage is ("profile_by_stage" in sent)
    assert "contents: flops" not in request.unsupported


def test_flops_that_the_tool_torch_is_asked_for_are_unsupported():
    """SGLang's profiler cannot count them."""
    request = Request(SglangOptions(), Facts("Engine", device="cuda"), {"contents": ["flops"]})

    request.fields(Path("/traces"), rlprof.Window(7, 8), rlprof.Target("rollout"))

    assert [*request.unsupported] == ["contents: flops"]


GPU, MEM = "activities: GPU", "activities: MEM"


# failures.md: sglang-harm
@cases(
    "device, options, found, told",
    ("cpu", {}, ["CPU"], []),
    ("cpu", {"contents": ("cuda",)}, ["CPU"], [GPU]),
    ("cpu", {"activities": ("CPU", "GPU")}, ["CPU"], [GPU]),
    ("cpu", {"activities": ("CPU", "MEM")}, ["CPU"], [MEM]),
    ("cuda", {"activities": ("GPU", "MEM")}, ["GPU", "MEM"], []),
    ("cpu", {"activities": ("MEM",)}, "MEM cannot be recorded on cpu", []),
    ("", {"activities": ("MEM",)}, "MEM cannot be recorded on an unknown device", []),
)
def test_what_a_device_cannot_record_is_left_out_or_refused(device, options, found, told):
    """Torch would assert, and the scheduler would end."""
    request = Request(SglangOptions(**options), Facts("Engine", device=device), {})

    if isinstance(found, str):
        with pytest.raises(rlprof.CaptureError, match=found):
            request.activities()
        return
    assert [*request.activities()] == found
    assert [*request.unsupported] == told


@pytest.mark.parametrize(("sleeps", "is_told"), [(None, False), (True, False), (False, True)])
def test_idle_schedulers_that_spin_are_reported(sleeps, is_told):
    """With stacks they would fill a trace."""
    assert bool(sleepless(SimpleNamespace(facts=Facts("Engine", sleeps=sleeps)))) is is_told


@pytest.mark.parametrize(("version", "named"), [("9.1", "release 9.1"), ("", "of this engine")])
def test_what_a_release_lacks_is_named(version, named):
    """Our code in the schedulers did not find it."""
    facts = Facts("Engine", version=version, lacks=("Scheduler.run_batch",))

    with pytest.raises(rlprof.CaptureError, match=f"no Scheduler.run_batch: .*{named}"):
        way(SglangOptions(way="worker"), SimpleNamespace(facts=facts), {"torch": {}})


@pytest.mark.parametrize(("nodes", "counts"), [(1, True), (2, False)])
def test_schedulers_count_steps_only_if_all_of_them_are_here(nodes, counts):
    """Those of another node would not know of the order, and the ranks would stop apart."""
    facts = Facts("Engine", device="cuda", is_inside=True, nodes=nodes)
    request = Request(SglangOptions(iterations=Iterations(2)), facts, {})

    fields = request.fields(Path("/traces"), rlprof.Window(7, 8), rlprof.Target("rollout"))

    assert (fields["output_dir"] != "/traces", fields.get("num_steps")) == (
        counts,
        None if counts else 2,
    )


@cases("contents, chosen", (None, "worker"), ((), "worker"), (("cpu", "stack"), "native"))
def test_contents_choose_the_profiler_they_are_for(contents, chosen):
    """Inside they would mean nothing; an empty list is verl's default, and asks for nothing."""
    born_with_us = SimpleNamespace(facts=Facts("Engine", is_inside=True))

    assert way(SglangOptions(contents=contents), born_with_us, {"torch": {}}) == chosen


@pytest.mark.parametrize("is_inside", [False, True])
def test_sglangs_own_profiler_in_place_of_the_tool_is_reported(is_inside):
    """Where the engine was launched without us, and nobody has asked for that profiler."""
    launched = SimpleNamespace(facts=Facts("Engine", is_inside=is_inside))

    said = unasked(SglangOptions(), launched, {"torch": {}})

    assert [*said] == ([] if is_inside else ["tool: torch"])
    assert all(SWITCH in why for why in said.values())
