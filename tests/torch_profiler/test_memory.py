"""The tool `torch_memory`, on a real device or on a stand-in for its allocator."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

import rlprof
from rlprof.testing import ToolTests
from rlprof_torch import TorchMemory, _memory

pytestmark = pytest.mark.slow


class Allocator:
    """Stands in for torch.cuda.memory: takes the calls that the real one takes."""

    def __init__(self) -> None:
        self.calls, self.observers = [], []

    def _record_memory_history(self, **options):
        self.calls.append(("history", options))

    def _dump_snapshot(self, path):
        self.calls.append(("dump", path))
        Path(path).write_bytes(b"not opened by anyone")


class TestTorchMemory(ToolTests):
    """Without a device, these tests run on the stand-in."""

    plugin = TorchMemory
    options = {"max_entries": 1000, "stacks": True}
    produces = "files"

    @pytest.fixture(autouse=True)
    def _stand_in(self, monkeypatch):
        if not torch.cuda.is_available():
            monkeypatch.setattr(_memory, "_allocator", Allocator)

    def work(self):
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.ones(1000, device=device).cumsum(0).tolist()


@pytest.fixture(name="config")
def _config(tmp_path):
    return {
        "run_dir": str(tmp_path / "runs"), "scratch_dir": str(tmp_path / "scratch"),
        "tool": "torch_memory", "steps": [1], "roles": {"actor": {}},
    }  # fmt: skip


@pytest.fixture(name="allocator")
def _allocator(monkeypatch):
    made = Allocator()
    monkeypatch.setattr(_memory, "_allocator", lambda: made)
    name = "_cuda_attach_out_of_memory_observer"
    monkeypatch.setattr(torch._C, name, made.observers.append, raising=False)
    return made


def record(config, body=lambda: None):
    with rlprof.open(config) as prof:
        prof.step(1)
        with prof.phase("update_actor"):
            body()
    (capture,) = rlprof.read(prof.run_dir).captures
    return capture


def test_without_a_device_the_capture_fails_and_says_why(config):
    """On a machine without CUDA the capture fails with the reason, and training goes on."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here, so the device is not absent")

    capture = record(config)

    assert capture.state == "failed"
    assert "sees no CUDA device here" in capture.notes[0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU; none is here")
def test_a_memory_snapshot_loads(config):
    """The snapshot holds segments and the history of the window."""
    capture = record(config, lambda: torch.ones(512, 512).cuda().sum().item())

    assert capture.state == "whole"
    (file,) = Path(config["run_dir"]).rglob("*.memory.pickle")
    snapshot = pickle.loads(file.read_bytes())
    assert snapshot["segments"]
    assert any(snapshot["device_traces"])


def test_history_is_on_only_while_the_window_is_open(config, allocator):
    """History is on, with the options, from the start of a window to its stop, which dumps it."""
    config["tools"] = {"torch_memory": {"max_entries": 7, "stacks": False}}
    inside = []

    capture = record(config, lambda: inside.append(list(allocator.calls)))

    on = {
        "enabled": "all", "context": None, "stacks": "python", "max_entries": 7,
        "clear_history": True,
    }  # fmt: skip
    assert inside == [[("history", on)]]
    assert [call[0] for call in allocator.calls] == ["history", "dump", "history"]
    assert allocator.calls[-1] == ("history", {"enabled": None})
    assert capture.state == "whole"
    assert [a.format for a in capture.artifacts] == ["pickle"]
    assert capture.artifacts[0].path.endswith(".memory.pickle")


def test_a_failed_dump_still_switches_the_history_off(config, allocator, monkeypatch):
    """A dump that fails still switches the history off, which costs time in every allocation."""

    def fail(path):
        raise OSError("disk full")

    monkeypatch.setattr(allocator, "_dump_snapshot", fail)

    capture = record(config)

    assert allocator.calls[-1] == ("history", {"enabled": None})
    assert "stop: OSError: disk full" in capture.notes


def test_an_allocation_that_fails_leaves_a_snapshot(config, allocator):
    """`on_oom` writes a snapshot of a failed allocation, at most three in a window."""
    config["tools"] = {"torch_memory": {"on_oom": True}}

    def run_out():
        (observer,) = allocator.observers
        for _ in range(5):
            observer(0, 1, 2, 3)

    capture = record(config, run_out)
    allocator.observers[0](0, 1, 2, 3)

    names = [artifact.path.rpartition("pid")[2].partition("_")[2] for artifact in capture.artifacts]
    assert names[:3] == [f"oom-{n}.memory.pickle" for n in (1, 2, 3)]
    assert len(capture.artifacts) == 4
    assert sum(call[0] == "dump" for call in allocator.calls) == 4
