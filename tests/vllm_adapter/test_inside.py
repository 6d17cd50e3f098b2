"""Our capture inside a worker, where recording goes wrong."""

from __future__ import annotations

from rlprof import Window
from rlprof_vllm.inside import Recording


class Worker:
    """Runs a model, and counts how often."""

    ran = 0

    def execute_model(self, _):
        self.ran += 1
        return "tokens"


class Broken:
    """An order that cannot be obeyed."""

    window = Window(1, 2)
    asked = 0

    def begin(self, _):
        self.asked += 1
        raise RuntimeError("no disk")


def test_a_window_that_cannot_begin_is_tried_once():
    """After the steps passed over it fails; the engine goes on, with its own method again."""
    worker, order = Worker(), Broken()
    recording = Recording(worker, order, None, skip=1, count=5)
    recording.begin()

    answers = [worker.execute_model(None) for _ in range(4)]

    assert answers == ["tokens"] * 4
    assert (worker.ran, order.asked) == (4, 1)
    assert "execute_model" not in vars(worker)
    assert "no disk" in recording.why
