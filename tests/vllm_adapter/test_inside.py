"""Our capture inside a worker, where recording goes wrong."""

from __future__ import annotations

from rlprof import Window
from rlprof_engine.recording import Place, Recording


class Worker:
    """Runs a model, and counts how often."""

    ran = 0

    def execute_model(self, _):
        self.ran += 1
        return "tokens"


def place_of(worker):
    """Say what is watched of it."""
    return Place(0, {}, worker, "execute_model", lambda _: "a step")


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
    recording = Recording(place_of(worker), order, None, skip=1, count=5)
    recording.begin()

    answers = [worker.execute_model(None) for _ in range(4)]

    assert answers == ["tokens"] * 4
    assert (worker.ran, order.asked) == (4, 1)
    assert "execute_model" not in vars(worker)
    assert "no disk" in recording.why


class Follower:
    """Records, and notes when."""

    def __init__(self):
        self.seen = []

    def push(self, _):
        self.seen.append("step")

    def pop(self):
        pass

    def end(self, *_):
        self.seen.append("end")


class Good(Broken):
    """An order that is obeyed."""

    def begin(self, _):
        self.asked += 1
        return ""


def wrapped_over(worker):
    """Have a framework put a method of its own over the worker's."""
    inner = worker.execute_model
    worker.execute_model = lambda output: inner(output)  # noqa: PLW0108 -- what frameworks do


# failures.md: vllm-cut
def test_a_window_that_is_over_does_not_begin_below_somebody_elses_method():
    """It ended before its first steps were passed over; ours goes on being called."""
    worker, order, follower = Worker(), Good(), Follower()
    recording = Recording(place_of(worker), order, follower, skip=2, count=5)
    recording.begin()
    wrapped_over(worker)
    worker.execute_model(None)
    recording.end("end")

    answers = [worker.execute_model(None) for _ in range(4)]

    assert answers == ["tokens"] * 4
    assert (order.asked, follower.seen) == (0, [])
    assert recording.is_waiting


# failures.md: vllm-cut
def test_a_window_that_has_its_steps_keeps_why_it_ended():
    """Below somebody else's method it is not begun once more."""
    worker, order, follower = Worker(), Good(), Follower()
    recording = Recording(place_of(worker), order, follower, count=2)
    recording.begin()
    wrapped_over(worker)

    for _ in range(5):
        worker.execute_model(None)

    assert (order.asked, follower.seen) == (1, ["step", "step", "end"])
    assert recording.why == "iterations.count 2 was reached"
