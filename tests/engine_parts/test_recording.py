"""One window in one of an engine's processes: when it begins, and what ends it."""

from __future__ import annotations

import json
import time

import attrs
import pytest

import rlprof
from rlprof import Window
from rlprof_engine.recording import IDLE, Cut, Place, Recording, obeyed
from tests.cases import cases
from tests.engine_parts.lab import Follower


class Worker:
    def run(self, batch):
        return f"ran {batch}"

    def asked(self, request):
        return f"did {request}"


@attrs.define
class Order:
    """An order as a process reads it: it is obeyed, refused with a reason, or fails."""

    why: str = ""
    fails: bool = False
    verb: str = "begin"
    run: str = "a"
    begun: int = 0
    made: list = attrs.field(factory=list)
    window = Window(1, 2)
    reason = "end"

    def begin(self, _):
        self.begun += 1
        if self.fails:
            raise RuntimeError(self.why)
        return self.why

    def chooses(self, _):
        return True

    def rank(self, number):
        return 10 + number

    def follower(self, *_):
        self.made.append(Follower())
        return self.made[-1]


class Begun:
    """A recording of a worker that has begun; a request may end it."""

    def __init__(self, order=None, fails="", *, worker=None, word=None, is_lazy=False, **chosen):
        self.worker, self.order = worker or Worker(), order or Order()
        self.follower = Follower(fails)
        place = Place(0, {}, self.worker, "run", lambda batch: f"step {batch}",
                      [Cut(self.worker, "asked", word)], is_lazy=is_lazy)  # fmt: skip
        self.recording = Recording(place, self.order, self.follower, **chosen)
        self.answer = self.recording.begin()

    def ran(self, count):
        """Run *count* steps, and check that the engine gets its answers."""
        answers = [self.worker.run(number) for number in range(count)]
        assert answers == [f"ran {number}" for number in range(count)]
        return self


@cases(
    "steps, word, why, is_ended",
    (1, None, "the engine was asked to asked", True),
    (1, lambda text: text.removesuffix(" now"), "the engine was asked to load weights", True),
    (1, lambda _: "", "", False),
    (1, lambda _: {}["no such request"], "KeyError: 'no such request'", False),
    (0, None, "", False),  # NeMo-RL sends weights after the step began, and generates then
    ids=["its name", "what is asked", "nothing", "what cannot be found", "before a step"],
)
def test_a_watched_call_after_a_step_ends_the_window(steps, word, why, is_ended):
    """A watched call after a step ends the window if there is a word for it, and works as ever."""
    one = Begun(word=word).ran(steps)

    answer = one.worker.asked("load weights now")
    one.ran(1)

    assert (answer, one.recording.why) == ("did load weights now", why)
    assert one.follower.seen[2 * steps :] == ([why] if is_ended else ["step 0", "pop"])


@pytest.mark.parametrize("fails", ["push", "pop", "end"])
def test_an_error_of_the_recording_does_not_reach_the_engine(fails):
    """If the recording fails, the steps of the engine run, and the first reason is kept."""
    one = Begun(fails=fails, count=2).ran(4)

    by_count = "iterations.count 2 was reached"
    assert one.recording.why == (f"RuntimeError: no {fails}" if fails != "end" else by_count)


def test_an_engine_step_that_raises_is_recorded_and_raises():
    """A step that raises closes its range and raises its own error."""
    worker = Worker()
    worker.run = lambda _: 1 / 0
    one = Begun(worker=worker)

    with pytest.raises(ZeroDivisionError):
        worker.run(0)

    assert (one.follower.seen, one.recording.done) == (["step 0", "pop"], 1)


@pytest.mark.parametrize("fails", [False, True])
def test_a_refused_lazy_recording_lets_steps_run(fails):
    """A lazy recording that is refused keeps the reason and gives the method back."""
    one = Begun(Order("no disk", fails), is_lazy=True).ran(3)

    assert (one.answer, one.order.begun) == ("", 1)
    assert one.recording.why == ("RuntimeError: no disk" if fails else "no disk")
    assert vars(one.worker) == {}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({"skip": 2, "count": 5}, (0, 0, "")),
     ({"count": 2}, (1, 2, "iterations.count 2 was reached"))],
    ids=["it ended before its first step", "it has its steps"],
)  # fmt: skip
def test_a_window_that_is_over_does_not_begin_under_another_wrapper(chosen, expected):
    """A window that is over stays over, even if another wrapper still calls rlprof's method."""
    one = Begun(**chosen)
    inner = one.worker.run
    one.worker.run = lambda batch: inner(batch)  # noqa: PLW0108 -- what frameworks do
    one.ran(1 if "skip" in chosen else 2)
    one.recording.end("end")
    one.ran(5)

    assert (one.order.begun, one.recording.done, one.recording.why) == expected


@pytest.fixture(name="obey")
def _obey(monkeypatch):
    """Return a function that has a worker obey an order, and returns its answer."""

    def obey(worker, order, method="run", *, is_lazy=False, **chosen):
        monkeypatch.setattr(rlprof.Order, "read", lambda _: order)
        said = json.dumps({"order": "", "iterations": chosen})
        place = Place(3, {"tp": 1}, worker, method, str, is_lazy=is_lazy)
        return json.loads(obeyed(said, lambda: place))

    return obey


def test_a_window_ends_when_the_next_begins_and_not_by_the_end_of_another_run(obey):
    """The next begin ends a window, the end of another run does not; answers have their times."""
    worker, first, before = Worker(), Order(run="dead"), time.time_ns()

    obey(worker, first)
    obey(worker, Order())
    other = obey(worker, Order(verb="end", run="dead"))
    own = obey(worker, Order(verb="end"))

    assert first.made[0].seen == ["the next window began"]
    assert (other["state"], own["state"]) == ("idle", "ended")
    assert before <= own["at_ns"] <= time.time_ns()
    assert 0 <= own["seconds"] <= (time.time_ns() - before) / 1e9 + 1e-6


@pytest.mark.parametrize("verb", ["prepare", "begin"])
def test_an_engine_without_the_method_that_runs_steps_is_refused(obey, verb):
    """An order to an engine without the method that runs steps is refused with its name."""
    order = Order(verb=verb)

    said = obey(Worker(), order, method="no_such")

    assert (said["state"], order.begun) == ("refused", 0)
    assert "no Worker.no_such" in said["why"]


@cases("is_lazy, steps, why", (True, 0, IDLE), (True, 1, "skip"), (False, 0, "skip"))
def test_a_window_that_ends_before_its_first_step_says_why(obey, is_lazy, steps, why):
    """A window without steps was skipped or, only in a lazy engine that ran none, idle."""
    worker = Worker()

    obey(worker, Order(), is_lazy=is_lazy, skip=3)
    for number in range(steps):
        worker.run(number)
    said = obey(worker, Order(verb="end"), is_lazy=is_lazy)

    assert said["state"] == "idle"
    assert why in said["why"]
