"""An Engine whose loop rests is asked on it; no call for tokens may meet another on that loop."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from rlprof import CaptureError
from rlprof_sglang._engine import reach

pytestmark = pytest.mark.slow


async def _answer():
    return "answered"


class Asked:
    """An Engine, whose method runs its loop on the thread that asks."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.tokenizer_manager = SimpleNamespace(event_loop=self.loop, start_profile=None)

    def generate(self, seconds):
        return self.loop.run_until_complete(asyncio.sleep(seconds, "tokens"))

    def shutdown(self):
        pass

    def stream(self, count):
        for one in range(count):
            yield self.loop.run_until_complete(asyncio.sleep(0.001, one))


@pytest.mark.parametrize("how", ["a method", "the loop itself", "a stream"])
def test_a_thread_that_asks_and_another_that_opens_windows_take_turns(how):
    """No call for tokens meets a hook on the loop; a hook is run by whoever runs it already."""
    handle = Asked()
    engine = reach(handle)
    heard, over = [], threading.Event()

    def rollout():
        while not over.is_set():
            if how == "a method":
                heard.append(handle.generate(0.002))
            elif how == "the loop itself":
                heard.append(handle.loop.run_until_complete(asyncio.sleep(0.002, "tokens")))
            else:
                heard.append("tokens" if [*handle.stream(5)] == [0, 1, 2, 3, 4] else "")

    thread = threading.Thread(target=rollout)
    thread.start()
    answers = {engine.drive(_answer(), 5) for _ in range(100)}
    over.set()
    thread.join()

    assert answers == {"answered"}
    assert set(heard) == {"tokens"}
    handle.loop.close()


def test_a_hook_is_not_behind_a_long_call():
    """It runs on the loop while that call still does."""
    handle = Asked()
    engine = reach(handle)
    over = asyncio.Event()
    thread = threading.Thread(target=handle.loop.run_until_complete, args=(over.wait(),))
    thread.start()
    while not handle.loop.is_running():
        time.sleep(0.01)

    answer = engine.drive(_answer(), 30)

    assert (answer, thread.is_alive()) == ("answered", True)
    assert (engine.is_resting, engine.loop) == (True, None)
    handle.loop.call_soon_threadsafe(over.set)
    thread.join()
    handle.loop.close()


def test_a_loop_that_comes_to_rest_is_run_for_the_rest_of_a_hook():
    """Whoever ran it was there for a moment; a step does not wait for them to come again."""
    handle = Asked()
    engine = reach(handle)
    thread = threading.Thread(target=handle.generate, args=(0.2,))
    thread.start()
    while not handle.loop.is_running():
        time.sleep(0.01)

    assert engine.drive(asyncio.sleep(0.5, "slept"), 60) == "slept"

    thread.join()
    handle.loop.close()


def test_a_call_does_not_wait_for_a_hook_that_takes_long():
    """It runs the loop in our place, and serves the hook."""
    handle = Asked()
    engine = reach(handle)
    over = asyncio.Event()
    hook = threading.Thread(target=lambda: engine.drive(over.wait(), 60))
    hook.start()
    while not handle.loop.is_running():
        time.sleep(0.01)

    assert handle.generate(0.01) == "tokens"

    assert hook.is_alive()
    handle.loop.call_soon_threadsafe(over.set)
    hook.join()
    handle.loop.close()


def test_calls_that_meet_each_other_fail_as_they_would_without_us():
    """Nobody waits for a turn of somebody else's: the engine says what it says to that."""
    handle = Asked()
    reach(handle)
    thread = threading.Thread(target=handle.generate, args=(1,))
    thread.start()
    while not handle.loop.is_running():
        time.sleep(0.01)

    with pytest.raises(RuntimeError, match="already running"):
        handle.loop.run_until_complete(handle.loop.create_future())

    thread.join()
    assert handle.generate(0) == "tokens"
    handle.loop.close()


# failures.md: engine-gone
def test_a_call_that_an_engine_is_shut_down_over_is_given_up(monkeypatch):
    """A thread that waits for its answer learns that there will be none."""
    monkeypatch.setattr("rlprof_engine.calls._LOOK_S", 0.05)
    handle = Asked()
    engine = reach(handle)
    asked = threading.Event()

    async def for_ever():
        asked.set()
        await asyncio.sleep(3600)

    handle.tokenizer_manager.stop_profile = for_ever
    ended = threading.Thread(target=lambda: asked.wait(30) and handle.shutdown())
    ended.start()

    with pytest.raises(CaptureError, match="the engine died before it answered stop_profile"):
        engine.drive(engine.stop(), 60)

    ended.join()
    handle.loop.close()
