"""The tool `npu` with vLLM: driven inside a worker, and refused where that cannot be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import rlprof
from rlprof.config import check_config
from rlprof_vllm import Vllm, inside
from rlprof_vllm._options import VllmOptions
from tests.fakes.npu_inside import recorded
from tests.fakes.torch_npu import FakeNpu

pytestmark = pytest.mark.slow


class Worker:
    """The second of two of tensor parallelism."""

    rank = 1
    vllm_config = SimpleNamespace(
        parallel_config=SimpleNamespace(
            tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_index=0
        )
    )

    def execute_model(self, _):
        return "tokens"


@pytest.fixture(name="library")
def _library(monkeypatch):
    fake = FakeNpu()
    fake.install(monkeypatch)
    return fake


def told(tmp_path):
    """Record a window inside a worker; return what it left, and what vLLM got of its step."""
    worker, got = Worker(), []
    wrapper = SimpleNamespace(worker=worker)
    left = recorded(
        tmp_path, "vllm", lambda text: inside.obey(wrapper, text),
        lambda: got.append(worker.execute_model(None)),
    )  # fmt: skip
    return left, got


def test_npu_is_driven_inside_a_worker(library, tmp_path):
    """It starts and stops where the worker computes, each engine step is a range; all is whole."""
    left, got = told(tmp_path)

    (profile,) = library.profiles
    assert got == ["tokens"]
    assert left.states == ["ready", "recording", "ended"]
    assert profile.calls == ["start", "step", "stop"]
    assert [(one.state, one.target.worker) for one in left.captures] == [("whole", 1)]
    assert library.marks.calls[-1][1] == "rlprof"
    assert library.marks.open == {}


def test_a_worker_without_an_npu_refuses_the_window(library, tmp_path):
    """The worker goes on, the window has the reason, and nothing was started."""
    library.devices = 0

    left, got = told(tmp_path)

    assert got == ["tokens"]
    assert [(one.state, one.artifacts) for one in left.captures] == [("failed", ())]
    assert "sees no NPU here" in left.captures[0].notes[0]
    assert library.profiles == []


def test_who_records_is_said_beforehand():
    """A config that asks for it is taken, and `rlprof check` says that it records inside."""
    roles = {"rollout": {"engine": "vllm", "tool": "npu"}}

    _, tools = check_config({"steps": [1], "roles": roles})

    (said,) = Vllm.advise(VllmOptions(), {"npu": {}}, on_host=False)

    assert [use.name for use in tools["rollout"]] == ["vllm"]
    assert (said.about, said.text) == ("records", "inside it: npu")


def test_vllms_own_profiler_does_not_stand_for_it():
    """Asked to go the native way it is refused before the run, with the way to go."""
    roles = {"rollout": {"engine": "vllm", "tool": "npu"}}
    config = {"steps": [1], "roles": roles, "engines": {"vllm": {"way": "native"}}}

    with pytest.raises(rlprof.ConfigError) as raised:
        rlprof.launch(config, role="rollout")

    what = "way: native records with vLLM's own torch profiler; npu needs way: worker"
    assert raised.value.faults == (f"config: engines.vllm: {what}",)
