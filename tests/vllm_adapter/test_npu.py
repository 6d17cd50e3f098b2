"""The tool `npu` with vLLM: driven inside a worker."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlprof_vllm import inside
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
