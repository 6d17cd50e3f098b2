"""An Engine whose loop rests is asked on it; no call for tokens may meet another on that loop."""

import asyncio
import inspect
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from rlprof import CaptureError
from rlprof_sglang._engine import reach
from tests.waiting import wait_until


async def _answer():
    return "answered"


class Asked:
    """An Engine, whose method runs its loop on the thread that asks."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.tokenizer_manager = SimpleNamespace(event_loop=self.loop, start_profile=None)

    def generate(self, seconds):
        return self.loop.run_until_complete(asyncio.sleep(seconds, "tokens"))

    def wait(self, promise):
        return self.loop.run_until_complete(promise)

    async def generate_async(self, seconds):
        return await asyncio.sleep(seconds, "tokens")

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


def test_the_loop_stays_as_it_is(handle):
    """It may be the loop of the user's program; asyncio compares loops by their identity."""
    own, before = handle.loop, dict(vars(handle.loop))

    reach(handle)
    reach(handle, loop=handle.loop)

    assert handle.loop is own
    assert vars(own) == before
    assert inspect.iscoroutinefunction(handle.generate_async)
    assert str(inspect.signature(handle.generate)) == "(seconds)"


@pytest.mark.slow
def test_engines_of_one_thread_share_its_loop_and_their_turns(handle):
    """A hook of one runs the loop: a call of the other waits for it."""
    other = Asked()
    other.loop.close()
    other.loop = other.tokenizer_manager.event_loop = handle.loop
    engine, over = reach(handle), asyncio.Event()
    reach(other)

    with on_a_thread(handle, lambda: engine.drive(over.wait(), 60)):
        assert other.generate(0.01) == "tokens"

        handle.loop.call_soon_threadsafe(over.set)


def test_a_task_that_runs_during_a_hook_may_call_the_engine(handle):
    """It gets the error that it would get without us, and waits for nobody."""
    engine, seen = reach(handle), []

    async def calls():
        try:
            handle.wait(handle.loop.create_future())
        except RuntimeError as exc:
            seen.append(str(exc))

    handle.loop.create_task(calls())

    assert engine.drive(_answer(), 5) == "answered"
    assert ["running" in one for one in seen] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["a method", "a stream"])
def test_a_thread_that_asks_and_another_that_opens_windows_take_turns(handle, how):
    """No call for tokens meets a hook on the loop; a hook is run by whoever runs it already."""
    engine = reach(handle)
    heard, over = [], threading.Event()

    def rollout():
        while not over.is_set():
            if how == "a method":
                heard.append(handle.generate(0.002))
            else:
                heard.append("tokens" if [*handle.stream(5)] == [0, 1, 2, 3, 4] else "")

    with on_a_thread(handle, rollout):
        answers = {engine.drive(_answer(), 5) for _ in range(100)}
        over.set()

    assert (answers, set(heard)) == ({"answered"}, {"tokens"})


# failures.md: sglang-loop
@pytest.mark.slow
def test_a_thread_that_runs_the_loop_by_itself_is_never_met(handle):
    """A window is refused from then on; what ends one is served when that thread runs the loop."""
    engine, over, heard, refused, ended = reach(handle), threading.Event(), [], 0, 0

    def rollout():
        while not over.is_set():
            heard.append(handle.loop.run_until_complete(handle.generate_async(0.002)))

    with on_a_thread(handle, rollout):
        wait_until(lambda: heard)
        for _ in range(50):
            try:
                engine.drive(_answer(), 5, begins=True)
            except CaptureError as exc:
                refused += "loop=engine.loop" in str(exc)
            ended += engine.drive(_answer(), 5) == "answered"
        over.set()

    assert (refused, ended, set(heard)) == (50, 50, {"tokens"})


@pytest.mark.slow
def test_a_hook_gives_up_soon_where_only_a_stranger_may_run_the_loop(handle):
    """A step does not wait for a thread that may never come."""
    engine = reach(handle)
    other = threading.Thread(
        target=lambda: handle.loop.run_until_complete(handle.generate_async(0))
    )
    other.start()
    other.join()

    began = time.monotonic()
    with pytest.raises(CaptureError, match="did not answer"):
        engine.drive(_answer(), 60)

    assert time.monotonic() - began < 30
    handle.loop.run_until_complete(asyncio.sleep(0.05))  # it begins when somebody runs the loop
    assert not engine.is_late


def test_a_hook_is_not_behind_a_long_call(handle):
    """It runs on the loop while that call still does."""
    engine, over = reach(handle), asyncio.Event()

    with on_a_thread(handle, handle.wait, over.wait()) as thread:
        answer = engine.drive(_answer(), 30)

        assert (answer, thread.is_alive()) == ("answered", True)
        assert (engine.is_resting, engine.loop) == (True, None)
        handle.loop.call_soon_threadsafe(over.set)


@pytest.mark.slow
def test_a_loop_that_comes_to_rest_is_run_for_the_rest_of_a_hook(handle):
    """Whoever ran it was there for a moment; a step does not wait for them to come again."""
    engine = reach(handle)

    with on_a_thread(handle, handle.generate, 0.2):
        assert engine.drive(asyncio.sleep(0.5, "slept"), 60) == "slept"


@pytest.mark.slow
def test_a_call_does_not_wait_for_a_hook_that_takes_long(handle):
    """It runs the loop in our place, and serves the hook."""
    engine, over = reach(handle), asyncio.Event()

    with on_a_thread(handle, lambda: engine.drive(over.wait(), 60)) as hook:
        assert handle.generate(0.01) == "tokens"

        assert hook.is_alive()
        handle.loop.call_soon_threadsafe(over.set)


@pytest.mark.slow
def test_calls_that_meet_each_other_fail_as_they_would_without_us(handle):
    """Nobody waits for a turn of somebody else's: the engine says what it says to that."""
    reach(handle)

    with on_a_thread(handle, handle.generate, 1), pytest.raises(RuntimeError, match="running"):
        handle.wait(handle.loop.create_future())

    assert handle.generate(0) == "tokens"
