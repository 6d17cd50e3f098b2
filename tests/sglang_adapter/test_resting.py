"""An Engine whose loop rests between calls: hooks and calls for tokens take turns on it."""

import asyncio
import inspect
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from rlprof import CaptureError
from rlprof_sglang import _turns
from rlprof_sglang._engine import reach
from tests.cases import cases, refused
from tests.engine_parts.lab import all_ended
from tests.waiting import wait_until


async def _answer():
    return "answered"


class Asked:
    """An Engine whose methods run its loop on the calling thread."""

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
    """`reach` changes neither the engine's loop nor the signatures of its methods."""
    own, before = handle.loop, dict(vars(handle.loop))

    reach(handle)
    reach(handle, loop=handle.loop)

    assert handle.loop is own
    assert vars(own) == before
    assert inspect.iscoroutinefunction(handle.generate_async)
    assert str(inspect.signature(handle.generate)) == "(seconds)"


# failures.md: sglang-attach
@cases(
    "handle, why",
    (SimpleNamespace(tokenizer_manager=None), "the node of rank 0 records all"),
    (SimpleNamespace(), "is not an engine: it has no start_profile; attach an Engine"),
)
def test_a_handle_that_cannot_be_recorded_is_refused(handle, why):
    """A handle without a frontend, or that is no engine, is refused with a remedy."""
    with pytest.raises(CaptureError, match=why):
        reach(handle)


@pytest.mark.slow
def test_engines_of_one_thread_share_its_loop_and_their_turns(handle):
    """While a hook of one engine waits, calls of both engines on its loop are answered."""
    other = Asked()
    other.loop.close()
    other.loop = other.tokenizer_manager.event_loop = handle.loop
    engine, over = reach(handle), asyncio.Event()
    reach(other)

    with on_a_thread(handle, lambda: engine.drive(over.wait(), 60)) as hook:
        assert [one.generate(0.01) for one in (handle, other)] == ["tokens"] * 2

        assert hook.is_alive()
        handle.loop.call_soon_threadsafe(over.set)


def test_a_task_that_runs_during_a_hook_may_call_the_engine(handle):
    """A task that calls the engine during a hook gets asyncio's own error and blocks nothing."""
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
    """Calls for tokens on one thread and hooks on another never meet on the loop."""
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
    """If a thread runs the loop by itself, begins are refused and other hooks are served."""
    engine, over, heard, kept_out, ended = reach(handle), threading.Event(), [], 0, 0

    def rollout():
        while not over.is_set():
            heard.append(handle.loop.run_until_complete(handle.generate_async(0.002)))

    with on_a_thread(handle, rollout):
        wait_until(lambda: heard)
        for _ in range(50):
            try:
                engine.drive(_answer(), 5, begins=True)
            except CaptureError as exc:
                kept_out += "loop=engine.loop" in str(exc)
            ended += engine.drive(_answer(), 5) == "answered"
        over.set()

    assert (kept_out, ended, set(heard)) == (50, 50, {"tokens"})


def test_a_hook_is_not_behind_a_long_call(handle):
    """A hook runs on the loop during a long call, without waiting for its end."""
    engine, over = reach(handle), asyncio.Event()

    with on_a_thread(handle, handle.wait, over.wait()) as thread:
        answer = engine.drive(_answer(), 30)

        assert (answer, thread.is_alive()) == ("answered", True)
        assert (engine.is_resting, engine.loop) == (True, None)
        handle.loop.call_soon_threadsafe(over.set)


@pytest.mark.slow
def test_a_loop_that_comes_to_rest_is_run_for_the_rest_of_a_hook(handle):
    """If the call that runs the loop ends, rlprof runs the loop until the hook is done."""
    engine = reach(handle)

    with on_a_thread(handle, handle.generate, 0.2):
        assert engine.drive(asyncio.sleep(0.5, "slept"), 60) == "slept"


@pytest.mark.slow
def test_calls_that_meet_each_other_fail_as_without_rlprof(handle):
    """Of two calls at once on the loop the second fails with asyncio's own error."""
    reach(handle)

    with on_a_thread(handle, handle.generate, 1), pytest.raises(RuntimeError, match="running"):
        handle.wait(handle.loop.create_future())

    assert handle.generate(0) == "tokens"


@cases(
    "attached, own, is_unborn",
    (None, None, True),
    ("a", None, False),
    (None, "a", True),
    ("a", "a", False),
    ("b", "a", True),
)
def test_an_engine_without_calls_is_recorded_only_on_its_own_loop(attached, own, is_unborn):
    """An engine that has had no call is refused unless its own loop is named."""
    asked = SimpleNamespace(start_profile=None, event_loop=None)
    handle = SimpleNamespace(tokenizer_manager=asked, loop=own)

    assert reach(handle, loop=attached)._is_unborn is is_unborn
    if is_unborn:
        with pytest.raises(CaptureError, match="call it once before, or name its loop"):
            asyncio.run(reach(handle, loop=attached).look())
    asked.event_loop = "a loop"
    assert not reach(handle)._is_unborn


def test_a_loop_is_named_only_while_it_serves(handle):
    """The engine gives its loop only while that runs there or for good; else it is resting."""
    engine, bare = reach(handle), reach(SimpleNamespace(start_profile=None))
    seen = []

    async def look():
        return engine.loop, engine.is_resting

    assert (engine.loop, engine.is_resting) == (None, True)
    assert (bare.loop, bare.is_resting) == (None, False)
    assert asyncio.run(_gone(bare.run, seen.append, 1)) is asyncio.run(engine.run(lambda: None))
    assert handle.loop.run_until_complete(look()) == (handle.loop, False)
    with on_a_thread(handle, handle.loop.run_forever):
        assert (engine.loop, engine.is_resting) == (handle.loop, False)
        asyncio.run(engine.run(lambda: seen.append(asyncio.get_running_loop())))
        handle.loop.call_soon_threadsafe(handle.loop.stop)
    assert seen == [1, handle.loop]
    other, engine._attached_on = engine._turns, None
    assert engine._take_turns(handle.loop) is other
    loop = asyncio.new_event_loop()
    assert engine._take_turns(loop).loop is loop
    loop.close()


async def _gone(run, function, given):
    await run(lambda: function(given))


def test_a_hook_that_cannot_run_there_is_refused(handle, monkeypatch):
    """A hook is refused on a closed loop, inside a loop, and where a stranger runs the loop."""
    engine, none = reach(handle), reach(SimpleNamespace(start_profile=None))
    monkeypatch.setattr(_turns, "_STRANGERS_S", 0.01)

    async def here():
        return engine.drive(_answer(), 1)

    assert "event loop is closed" in refused(CaptureError, none.drive, _answer(), 1)
    assert "an event loop runs on this thread" in refused(CaptureError, asyncio.run, here())
    engine._turns._strangers.add(-1)
    with pytest.raises(CaptureError, match="another thread runs the engine's event loop"):
        engine.drive(_answer(), 3, begins=True)
    began = time.monotonic()
    assert "did not answer within 60 s" in refused(CaptureError, engine.drive, _answer(), 60)
    assert time.monotonic() - began < 30  # a step does not wait for a thread that may never come
    assert engine.is_late
    engine._turns._strangers.clear()
    assert engine.drive(_answer(), 3, begins=True) == "answered"
    assert not engine.is_late
    handle.loop.close()
    assert "event loop is closed" in refused(CaptureError, engine.drive, _answer(), 1)


def test_an_engine_that_was_shut_down_is_not_called(handle):
    """A call to an engine whose loop rests, or that was shut down, is refused with the reason."""
    engine = reach(handle)

    assert "no longer runs" in refused(CaptureError, asyncio.run, engine.states())
    handle.shutdown()
    assert "was shut down" in refused(CaptureError, asyncio.run, engine.states())


@pytest.mark.parametrize(
    ("is_over", "loop_runs", "why"),
    [(True, True, "died before"), (False, False, "no longer runs"), (True, False, "died before"),
     (False, True, "")],
)  # fmt: skip
def test_an_engine_that_does_not_answer_is_dead_or_rests(handle, is_over, loop_runs, why):
    """A call fails if the engine dies or its loop stops; a slow engine is waited for."""
    engine = reach(handle)

    async def silence():
        handle.tokenizer_manager.gracefully_exit = is_over
        if not loop_runs:
            handle.loop.stop()
        await (asyncio.Event().wait() if why else asyncio.sleep(0.1))

    handle.tokenizer_manager.get_internal_state = silence
    with on_a_thread(handle, handle.loop.run_forever):
        said = ""
        try:
            asyncio.run(engine.states())
        except CaptureError as exc:
            said = str(exc)
        if loop_runs:
            handle.loop.call_soon_threadsafe(handle.loop.stop)
    handle.loop.run_until_complete(all_ended())
    assert why in said
    assert bool(why) is bool(said)
