"""One window in one of an engine's processes: when it begins, and what ends it."""

from __future__ import annotations

import json

import pytest

import rlprof
from rlprof import Window
from rlprof_engine.recording import Cut, Place, Recording, obeyed


class Worker:
    """Runs steps, and is asked things."""

    def run(self, batch):
        return f"ran {batch}"

    def asked(self, request):
        return f"did {request}"


class Order:
    """One that is obeyed, refused with a reason, or fails."""

    window = Window(1, 2)

    def __init__(self, why="", fails=False):
        self._why, self._fails = why, fails
        self.begun = 0

    def begin(self, _):
        self.begun += 1
        if self._fails:
            raise RuntimeError(self._why)
        return self._why


class Follower:
    """Notes what is recorded; it may fail at that."""

    def __init__(self, fails=""):
        self.seen, self._fails = [], fails

    def push(self, name):
        self._note("push", name)

    def pop(self):
        self._note("pop", "")

    def end(self, _, reason):
        self._note("end", reason)

    def _note(self, what, said):
        self.seen.append(said or what)
        if what == self._fails:
            raise RuntimeError(f"no {what}")


def recording_of(worker, order, follower, *, word=None, is_lazy=False, **chosen):
    """Make a recording of *worker*, which a request may end."""
    cuts = [Cut(worker, "asked", word)]
    place = Place(0, {}, worker, "run", lambda batch: f"step {batch}", cuts, is_lazy=is_lazy)
    return Recording(place, order, follower, **chosen)


def test_it_begins_at_once_or_with_the_first_step():
    """A lazy one lets idle time pass: nothing is begun before a step comes."""
    eager, lazy = Order(), Order()

    recording_of(Worker(), eager, Follower()).begin()
    worker, follower = Worker(), Follower()
    recording_of(worker, lazy, follower, is_lazy=True).begin()
    before = lazy.begun
    answer = worker.run("one")

    assert (eager.begun, before, lazy.begun) == (1, 0, 1)
    assert answer == "ran one"
    assert follower.seen == ["step one", "pop"]


def test_without_a_count_all_steps_are_recorded():
    """Until it is told to end; then the method is the engine's own again."""
    worker, follower = Worker(), Follower()
    recording = recording_of(worker, Order(), follower)
    recording.begin()

    for number in range(20):
        worker.run(number)
    recording.end("over")
    worker.run("later")

    assert (recording.done, recording.why) == (20, "")
    assert follower.seen[-2:] == ["pop", "over"]
    assert "step later" not in follower.seen
    assert vars(worker) == {}


@pytest.mark.parametrize(
    ("word", "request_", "why"),
    [(None, "weights", "the engine was asked to asked"),
     (lambda request: request if request == "load weights" else "", "load weights",
      "the engine was asked to load weights"),
     (lambda _: "", "tokens", "")],
    ids=["by its name", "by what is asked", "by nothing"],
)  # fmt: skip
def test_a_call_ends_a_window_by_the_word_for_it(word, request_, why):
    """No word: it goes on. The call itself comes to what it always does."""
    worker, follower = Worker(), Follower()
    recording = recording_of(worker, Order(), follower, word=word)
    recording.begin()

    answer = worker.asked(request_)
    worker.run("one")

    assert answer == f"did {request_}"
    assert recording.why == why
    assert follower.seen == ([why] if why else ["step one", "pop"])


@pytest.mark.parametrize("fails", ["push", "pop", "end"])
def test_what_is_wrong_with_recording_stays_out_of_the_step(fails):
    """The engine's step runs, and the first reason is kept."""
    worker = Worker()
    recording = recording_of(worker, Order(), Follower(fails), count=2)
    recording.begin()

    answers = [worker.run(number) for number in range(4)]

    assert answers == ["ran 0", "ran 1", "ran 2", "ran 3"]
    assert recording.why == (
        f"RuntimeError: no {fails}" if fails != "end" else "iterations.count 2 was reached"
    )


def test_a_word_that_cannot_be_found_ends_nothing():
    """What asks the engine is not spoilt by who listens."""
    worker, follower = Worker(), Follower()
    recording = recording_of(worker, Order(), follower, word=lambda _: {}["no such request"])
    recording.begin()

    assert worker.asked("anything") == "did anything"
    assert recording.why == "KeyError: 'no such request'"
    assert follower.seen == []


def test_an_engine_step_that_raises_is_recorded_and_raises():
    """It is the engine's own error, and its range is closed."""
    worker, follower = Worker(), Follower()
    worker.run = _broken
    recording = recording_of(worker, Order(), follower)
    recording.begin()

    with pytest.raises(ZeroDivisionError):
        worker.run("one")

    assert follower.seen == ["step one", "pop"]
    assert recording.done == 1


def _broken(_):
    raise ZeroDivisionError


@pytest.mark.parametrize("fails", [False, True])
def test_a_lazy_one_that_is_refused_says_so_and_lets_steps_run(fails):
    """It is asked once, and the engine has its own method again."""
    worker, order = Worker(), Order("no disk", fails)
    recording = recording_of(worker, order, Follower(), is_lazy=True)

    begun = recording.begin()
    answers = [worker.run(number) for number in range(3)]

    assert (begun, order.begun) == ("", 1)
    assert recording.why == ("RuntimeError: no disk" if fails else "no disk")
    assert answers == ["ran 0", "ran 1", "ran 2"]
    assert vars(worker) == {}


def wrapped_over(worker):
    """Have a framework put a method of its own over the worker's."""
    inner = worker.run
    worker.run = lambda batch: inner(batch)  # noqa: PLW0108 -- what frameworks do


def test_a_window_that_is_over_does_not_begin_below_somebody_elses_method():
    """It ended before its first steps were passed over; ours goes on being called."""
    worker, order, follower = Worker(), Order(), Follower()
    recording = recording_of(worker, order, follower, skip=2, count=5)
    recording.begin()
    wrapped_over(worker)
    worker.run(0)
    recording.end("end")

    answers = [worker.run(number) for number in range(3)]

    assert answers == ["ran 0", "ran 1", "ran 2"]
    assert (order.begun, follower.seen) == (0, [])


def test_a_window_that_has_its_steps_does_not_begin_again_below_somebody_elses_method():
    """Why it ended is kept."""
    worker, order, follower = Worker(), Order(), Follower()
    recording = recording_of(worker, order, follower, count=2)
    recording.begin()
    wrapped_over(worker)

    for number in range(5):
        worker.run(number)

    assert (order.begun, recording.done) == (1, 2)
    assert recording.why == "iterations.count 2 was reached"


class Sent(Order):
    """An order as a process reads it."""

    def __init__(self, verb, run="a"):
        super().__init__()
        self.verb, self.run, self.reason = verb, run, "end"
        self.made = []

    def chooses(self, _):
        return True

    def rank(self, number):
        return 10 + number

    def follower(self, *_):
        self.made.append(Follower())
        return self.made[-1]


@pytest.fixture(name="obey")
def _obey(monkeypatch):
    """Return a function that has a worker obey an order, and answers as it does."""

    def obey(worker, order, method="run"):
        monkeypatch.setattr(rlprof.Order, "read", lambda _: order)
        said = json.dumps({"order": "", "iterations": {}})
        return json.loads(obeyed(said, lambda: Place(3, {"tp": 1}, worker, method, str)))

    return obey


def test_a_window_ends_when_the_next_begins_and_not_by_the_end_of_another_run(obey):
    """Several runs may record one engine, in turn; one of them may have died."""
    worker = Worker()
    first = Sent("begin", "dead")

    obey(worker, first)
    obey(worker, Sent("begin", "a"))
    other = obey(worker, Sent("end", "dead"))
    own = obey(worker, Sent("end", "a"))

    assert first.made[0].seen == ["the next window began"]
    assert (other["state"], own["state"]) == ("idle", "ended")


@pytest.mark.parametrize("verb", ["prepare", "begin"])
def test_an_engine_without_the_method_that_runs_steps_is_refused(obey, verb):
    """Its release is not known: no window is better than an empty one that reads whole."""
    order = Sent(verb)

    said = obey(Worker(), order, method="no_such")

    assert said["state"] == "refused"
    assert "no Worker.no_such" in said["why"]
    assert order.begun == 0
