"""Whole sessions on faulty engines: the manifest names the fault, and generation continues."""

import asyncio
import threading

import pytest

from tests.engine_parts.lab import ANSWER, opened, states, traces_of
from tests.fakes.sglang_engines import engine

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("modules")]


@pytest.fixture(name="handle")
def _handle(modules):
    return engine()


LIMITS = {f"{hook}_timeout_s": 1.0 for hook in ("configure", "start", "stop")}
"""How long rlprof waits for an engine whose loop runs only during a call."""


# failures.md: sglang-refused
@pytest.mark.parametrize("hook", ["start_profile", "stop_profile"])
def test_windows_are_whole_again_after_a_late_reply(lab, handle, tmp_path, hook):
    """A late reply spoils one window; its stray session is ended, and later windows are whole."""
    gate = handle.tokenizer_manager.gates[hook] = threading.Event()

    def before(step):
        if step == 2:
            gate.set()
            handle.loop.run_until_complete(_turns())  # the loop runs, and gets the answer

    run = lab.train(handle, before=before, limits=LIMITS)
    (scheduler,) = handle.tokenizer_manager.replica.schedulers

    assert states(run)[0] in ("failed", "partial")
    assert states(run)[1:] == ["whole", "whole"]
    (trace,) = traces_of(run, 1)
    names = [one["name"] for one in opened(run, trace)["traceEvents"] if one["ph"] == "X"]
    assert names == ["step[EXTEND bs=1]", *["step[DECODE bs=1]"] * 3]
    assert not scheduler.part.profile_in_progress
    assert list((tmp_path / "traces").iterdir()) == []
    assert lab.answers == [ANSWER] * 3


async def _turns(left=20):
    """Run a loop until no call has been waiting on it for twenty turns."""
    while left := 20 if len(asyncio.all_tasks()) > 1 else left - 1:
        await asyncio.sleep(0.01)


# failures.md: engine-loop
def test_a_plain_phase_on_the_engines_own_loop_is_warned_of(lab, handle, caplog):
    """A phase without `async with` on the engine's own loop records nothing and logs a warning."""
    handle.generate = lambda _: ANSWER

    async def main():
        return lab.train(handle, steps=(1,))

    run = handle.loop.run_until_complete(main())
    handle.loop.run_until_complete(_turns())  # pending calls are answered

    assert run.problems == ("rollout replica 0: sglang: configure: never returned",)
    assert "its engine was not ready; enter phases by `async with`" in caplog.text
    assert handle.tokenizer_manager.called("start_profile") == []


# failures.md: sglang-attach
@pytest.mark.parametrize("how", ["with", "async with"])
def test_a_resting_engine_is_recorded_by_a_trainer_on_a_loop(lab, handle, how):
    """A trainer on an event loop records an Engine whose own loop rests between calls."""

    async def main():
        if how == "with":
            handle.generate = lambda _: ANSWER
            return lab.train(handle, steps=(1,))
        return await lab.train_on_a_loop(handle)

    run = asyncio.run(main())

    assert states(run) == ["whole"]
    assert lab.answers[0] == ANSWER
