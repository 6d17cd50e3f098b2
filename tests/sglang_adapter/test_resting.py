"""An Engine whose loop rests is asked on it; no call for tokens may meet another on that loop."""

import asyncio
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

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


@pytest.fixture(name="handle")
def _handle():
    handle = Asked()
    yield handle
    handle.loop.close()


@contextmanager
def on_a_thread(handle, function, *given, runs=True):
    """Call *function* on a thread of its own, until it runs the loop; wait for its end."""
    thread = threading.Thread(target=function, args=given)
    thread.start()
    while runs and not handle.loop.is_running():
        time.sleep(0.01)
    yield thread
    thread.join()


def test_the_loop_stays_as_it_is_and_the_engine_has_one_that_does_all_it_does(handle):
    """It may be the loop of the user's program; a second attach changes nothing more."""
    own, before = handle.loop, dict(vars(handle.loop))

    reach(handle)
    first = handle.loop
    reach(handle, loop=first)

    assert vars(own) == before
    assert handle.loop is first
    assert isinstance(first, asyncio.AbstractEventLoop)
    task = first.create_task(_answer())
    assert (first.run_until_complete(task), task.get_loop()) == ("answered", own)
    assert (first.is_running(), first.is_closed()) == (False, False)


@pytest.mark.parametrize("how", ["a method", "the loop itself", "a stream"])
def test_a_thread_that_asks_and_another_that_opens_windows_take_turns(handle, how):
    """No call for tokens meets a hook on the loop; a hook is run by whoever runs it already."""
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

    with on_a_thread(handle, rollout):
        answers = {engine.drive(_answer(), 5) for _ in range(100)}
        over.set()

    assert (answers, set(heard)) == ({"answered"}, {"tokens"})


def test_a_hook_is_not_behind_a_long_call(handle):
    """It runs on the loop while that call still does."""
    engine, over = reach(handle), asyncio.Event()

    with on_a_thread(handle, handle.loop.run_until_complete, over.wait()) as thread:
        answer = engine.drive(_answer(), 30)

        assert (answer, thread.is_alive()) == ("answered", True)
        assert (engine.is_resting, engine.loop) == (True, None)
        handle.loop.call_soon_threadsafe(over.set)


def test_a_loop_that_comes_to_rest_is_run_for_the_rest_of_a_hook(handle):
    """Whoever ran it was there for a moment; a step does not wait for them to come again."""
    engine = reach(handle)

    with on_a_thread(handle, handle.generate, 0.2):
        assert engine.drive(asyncio.sleep(0.5, "slept"), 60) == "slept"


def test_a_call_does_not_wait_for_a_hook_that_takes_long(handle):
    """It runs the loop in our place, and serves the hook."""
    engine, over = reach(handle), asyncio.Event()

    with on_a_thread(handle, lambda: engine.drive(over.wait(), 60)) as hook:
        assert handle.generate(0.01) == "tokens"

        assert hook.is_alive()
        handle.loop.call_soon_threadsafe(over.set)


def test_calls_that_meet_each_other_fail_as_they_would_without_us(handle):
    """Nobody waits for a turn of somebody else's: the engine says what it says to that."""
    reach(handle)

    with on_a_thread(handle, handle.generate, 1), pytest.raises(RuntimeError, match="running"):
        handle.loop.run_until_complete(handle.loop.create_future())

    assert handle.generate(0) == "tokens"
