"""The tool `npu` with SGLang: driven inside a scheduler, and refused where that cannot be."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.engine_parts.lab import notes, states
from tests.fakes.npu_inside import recorded
from tests.fakes.sglang_schedulers import Mode, batch
from tests.fakes.torch_npu import FakeNpu
from tests.sglang_adapter.generations import engine, manager
from tests.sglang_adapter.lab import NEW, OLD

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("release", [OLD, NEW])


@pytest.fixture(name="library")
def _library(inside, monkeypatch):
    """Give the thin torch of these tests what the tool asks torch, and a thin torch_npu."""
    torch = sys.modules["torch"]
    torch.autograd.profiler = SimpleNamespace(_is_profiler_enabled=False)
    torch._C = SimpleNamespace(_autograd=SimpleNamespace(_profiler_enabled=lambda: False))
    torch.profiler = SimpleNamespace(record_function=nullcontext)
    fake = FakeNpu()
    fake.install(monkeypatch)
    return fake


def told(release, tmp_path):
    """Record a window inside a scheduler; return what it left, and what SGLang got of its step."""
    from sglang.srt.managers.io_struct import made

    (scheduler,) = manager(release).replica.schedulers
    scheduler.get_internal_state()
    got = []

    def obey(text):
        scheduler.answered(made("START_PROFILE", {"output_dir": f"rlprof:{text}"}))
        return scheduler.get_internal_state().internal_state["rlprof"]["answer"]

    left = recorded(
        tmp_path, "sglang", obey, lambda: got.append(scheduler.run_batch(batch(Mode.DECODE)))
    )
    return left, got


@both
def test_npu_is_driven_inside_a_scheduler(release, library, tmp_path):
    """It starts with the first step, where that computes; a step is a range; all is whole."""
    left, got = told(release, tmp_path)

    (profile,) = library.profiles
    assert got == ["tokens"]
    assert left.states == ["ready", "recording", "ended"]
    assert profile.calls == ["start", "step", "stop"]
    assert [(one.state, one.target.worker) for one in left.captures] == [("whole", 0)]
    assert library.marks.calls[-1][1] == "rlprof"
    assert library.marks.open == {}


@pytest.mark.usefixtures("modules")
def test_sglangs_own_profiler_does_not_stand_for_it(release, lab):
    """Where the schedulers have no rlprof the window is refused, and says what to do."""
    run = lab.train(engine(release), steps=(1,), tool="npu")

    assert states(run) == ["failed"]
    assert "it records torch only, and cannot replace npu" in notes(run, 0)
