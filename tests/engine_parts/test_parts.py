"""Iterations as they are asked, calls that are not cut short, methods that are given back."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rlprof import CaptureError
from rlprof_engine.answers import answers_in, fewer, unseen
from rlprof_engine.calls import called, run_on
from rlprof_engine.cuts import Cuts
from rlprof_engine.iterations import Iterations
from rlprof_engine.wrapped import Wrapped


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"count": 0}, "expected at least 1, got 0"), ({"skip": -1}, "expected at least 0, got -1")],
)
def test_iterations_that_cannot_be_are_refused(asked, why):
    """None of nothing, and nothing before the first."""
    with pytest.raises(ValueError, match=why):
        Iterations(**asked)


def test_fewer_engine_steps_than_asked_for_are_told():
    """Of whom they can be counted, where there were any; that there were none is told otherwise."""
    ran = [("worker 0", 3), ("worker 1", 5), ("worker 2", None), ("worker 3", 0)]

    assert [fewer({"iterations": asked}, ran) for asked in (None, {"skip": 2})] == [[], []]
    assert fewer({"iterations": {"count": 5}}, ran) == [
        "worker 0: 3 of the 5 engine steps asked for; the window ended before the others"
    ]


async def later(value):
    await asyncio.sleep(0.01)
    return value


def test_a_call_is_answered_here_or_on_the_engines_own_loop():
    """Whichever it lives on; what it returns is what is answered."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    seen = []
    try:
        here = asyncio.run(called(later(1), None, lambda: False, "motor: start"))
        there = asyncio.run(called(later(2), loop, lambda: False, "motor: start"))
        asyncio.run(run_on(loop, lambda: seen.append(threading.current_thread())))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    assert (here, there) == (1, 2)
    assert seen == [thread]


def test_a_call_of_an_engine_that_dies_is_not_waited_for(monkeypatch):
    """It is said what it was asked; an answer that comes just then still counts."""
    monkeypatch.setattr("rlprof_engine.calls._LOOK_S", 0.05)

    async def never():
        return await called(asyncio.Event().wait(), None, lambda: True, "motor: start")

    with pytest.raises(CaptureError, match=r"^motor: the engine died before it answered start$"):
        asyncio.run(never())
    assert asyncio.run(called(later(3), None, lambda: True, "motor: start")) == 3


def test_a_call_that_is_given_up_goes_on():
    """One that is cancelled may block all later ones."""
    done = []

    async def main():
        begun, goes_on, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def call():
            begun.set()
            await goes_on.wait()
            done.append("answered")
            answered.set()

        waiting = asyncio.ensure_future(called(call(), None, lambda: False, "motor: start"))
        await begun.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        before = list(done)
        goes_on.set()
        await answered.wait()
        return waiting.cancelled(), before

    assert asyncio.run(main()) == (True, [])
    assert done == ["answered"]


class Motor:
    """Has a method, and counts nothing."""

    def run(self, speed):
        return speed


def test_methods_are_given_back_as_they_were():
    """One of the class is the class's again, one of the object its own, and another's stays."""
    plain, own, other = Motor(), Motor(), Motor()
    own.run = lambda speed: -speed
    wrapped = Wrapped()
    for motor in (plain, own, other):
        wrapped.put(motor, "run", lambda inner, speed: inner(speed) * 10)
    during = [motor.run(2) for motor in (plain, own, other)]
    inner = other.run
    other.run = lambda speed: inner(speed) + 1

    wrapped.take_back()

    assert during == [20, -20, 20]
    assert (plain.run(2), own.run(2), other.run(2)) == (2, -2, 21)
    assert vars(plain) == {}


def test_what_has_no_such_method_is_left_alone():
    """Of a release without it."""
    motor, wrapped = Motor(), Wrapped()

    wrapped.put(motor, "stop", lambda inner: inner())
    wrapped.take_back()

    assert vars(motor) == {}
    assert not hasattr(motor, "stop")


def test_a_call_that_ends_a_window_is_never_failed_for_it():
    """A profiler that cannot be asked as it should is told of, and the weights are loaded."""

    class Odd:
        def stop_profile(self):
            return None  # nothing to wait for, where a coroutine was expected

        async def update_weights(self):
            return "loaded"

    async def trained():
        odd = Odd()
        cuts = Cuts(odd, ("update_weights",))
        cuts.watch()
        found = await odd.update_weights()
        await cuts.unwatch()
        return found, cuts.reason, cuts.has_stopped

    found, reason, has_stopped = asyncio.run(trained())

    assert (found, has_stopped) == ("loaded", False)
    assert reason.startswith("the engine was asked to update weights; stop_profile: TypeError")


def test_answers_are_sorted_by_their_state():
    """All that failed is an error with the reasons; that others were not chosen is none."""
    recording, refused = {"state": "recording"}, {"state": "refused", "why": "no disk"}
    other = {"state": "not chosen"}

    assert answers_in([recording, refused], "recording", "x") == [recording]
    assert answers_in([other, refused], "recording", "x") == []
    with pytest.raises(CaptureError, match="x: no disk"):
        answers_in([refused], "recording", "x")


def test_requests_without_steps_are_told():
    """Some step must have given the first token; who recorded nothing by choice says nothing."""
    assert unseen([3, 0], 2) == unseen([0], 0) == unseen([], 2) == []
    (why,) = unseen([0, 0], 2)
    assert "2 requests" in why
