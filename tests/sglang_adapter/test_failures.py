"""Whole sessions on engines that go wrong: what the manifest says, and that generation goes on."""

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
"""How long is waited for an engine whose loop runs only while it is asked."""


# failures.md: sglang-refused
@pytest.mark.parametrize("hook", ["start_profile", "stop_profile"])
def test_a_reply_that_comes_late_makes_the_engine_known_again(lab, handle, tmp_path, hook):
    """A session of nobody's is ended; once all is answered, windows are whole again."""
    gate = handle.tokenizer_manager.gates[hook] = threading.Event()

    def before(step):
        if step == 2:
            gate.set()
            handle.loop.run_until_complete(_turns())  # it works, and hears the answer

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
    """Let a loop go round until no call has waited there for twenty turns."""
    while left := 20 if len(asyncio.all_tasks()) > 1 else left - 1:
        await asyncio.sleep(0.01)


# failures.md: engine-loop
def test_an_engine_on_its_own_loop_that_waits_for_us_is_told(lab, handle, caplog):
    """A phase entered there without `async with` holds up the very loop that would answer."""
    handle.generate = lambda _: ANSWER

    async def main():
        return lab.train(handle, steps=(1,))

    run = handle.loop.run_until_complete(main())
    handle.loop.run_until_complete(_turns())  # what waits there is answered

    assert run.problems == ("rollout replica 0: sglang: configure: never returned",)
    assert "its engine was not ready; enter phases by `async with`" in caplog.text
    assert handle.tokenizer_manager.called("start_profile") == []


# failures.md: sglang-attach
@pytest.mark.parametrize("how", ["with", "async with"])
def test_an_engine_that_rests_beside_the_trainers_loop_is_recorded(lab, handle, how):
    """Its own loop is run on another thread, where a trainer on a loop asks it for tokens."""

    async def main():
        if how == "with":
            handle.generate = lambda _: ANSWER
            return lab.train(handle, steps=(1,))
        return await lab.train_on_a_loop(handle)

    run = asyncio.run(main())

    assert states(run) == ["whole"]
    assert lab.answers[0] == ANSWER
