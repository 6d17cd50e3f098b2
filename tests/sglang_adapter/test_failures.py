"""Whole sessions on engines that go wrong: what the manifest says, and that generation goes on."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from tests.engine_parts.lab import ANSWER, all_ended, notes, opened, states, traces_of
from tests.fakes.sglang_engines import engine, manager

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("modules")]

SILENT = "the state of an earlier session is unknown"


@pytest.fixture(name="handle")
def _handle(modules):
    return engine()


# failures.md: sglang-attach
@pytest.mark.parametrize(
    ("handle", "why"),
    [(SimpleNamespace(tokenizer_manager=None, generate=lambda _: ANSWER),
      "this node has no tokenizer manager; the node of rank 0 records all"),
     (SimpleNamespace(generate=lambda _: ANSWER),
      "is not an engine: it has no start_profile; attach an Engine")],
)  # fmt: skip
def test_what_cannot_be_recorded_is_told_what_to_attach(lab, handle, why):
    """Of an engine on several nodes the first has the frontend."""
    run = lab.train(handle, steps=(1,))

    assert (states(run), lab.answers) == (["failed"], [ANSWER])
    assert why in notes(run, 0)


BRIEF = {f"{hook}_timeout_s": 0.2 for hook in ("configure", "start", "stop")}
"""How long is waited for an engine whose loop runs only while it is asked."""


# failures.md: sglang-refused
@pytest.mark.parametrize("hook", ["start_profile", "stop_profile"])
def test_a_reply_that_never_comes_leaves_the_engine_alone(lab, handle, hook):
    """Asked on this thread, it is given up; nothing more is sent, for that would queue behind."""
    handle.tokenizer_manager.gates[hook] = threading.Event()

    run = lab.train(handle, limits=BRIEF)
    handle.loop.run_until_complete(all_ended())

    within_s = 0.2 if "stop" in hook else 0.4  # the first start, with what comes before it
    assert f"the engine did not answer within {within_s} s" in notes(run, 0)
    assert states(run)[1:] == ["failed"] * 2
    assert SILENT in notes(run, 1)
    assert SILENT in notes(run, 2)
    sent = [name for name, _ in handle.tokenizer_manager.calls]
    assert sent == ["get_internal_state", "start_profile", "stop_profile"][: 2 + ("stop" in hook)]
    assert lab.answers == [ANSWER] * 3


# failures.md: sglang-refused
@pytest.mark.parametrize("hook", ["start_profile", "stop_profile"])
def test_a_reply_that_comes_late_makes_the_engine_known_again(lab, handle, hook):
    """A session of nobody's is ended; once all is answered, windows are whole again."""
    gate = handle.tokenizer_manager.gates[hook] = threading.Event()

    def before(step):
        if step == 2:
            gate.set()
            handle.loop.run_until_complete(_turns())  # it works, and hears the answer

    run = lab.train(handle, before=before, limits=dict.fromkeys(BRIEF, 1.0))
    (scheduler,) = handle.tokenizer_manager.replica.schedulers

    assert states(run)[0] in ("failed", "partial")
    assert states(run)[1:] == ["whole", "whole"]
    (trace,) = traces_of(run, 1)
    names = [one["name"] for one in opened(run, trace)["traceEvents"] if one["ph"] == "X"]
    assert names == ["step[EXTEND bs=1]", *["step[DECODE bs=1]"] * 3]
    assert not scheduler.part.profile_in_progress
    assert list(lab.traces.iterdir()) == []
    assert lab.answers == [ANSWER] * 3


async def _turns():
    """Let a loop go round often enough for what waits there, however slow the machine is."""
    for _ in range(20):
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


# failures.md: sglang-attach
@pytest.mark.parametrize("how", ["a manager", "an engine", "with its loop"])
def test_an_engine_that_nobody_has_asked_is_not_tied_to_our_loop(lab, how):
    """Whoever asks first gives it its loop for ever, and ours ends; who attaches may name one."""
    handle = manager() if how == "a manager" else engine()
    asked = getattr(handle, "tokenizer_manager", handle)
    asked.event_loop = None

    run = lab.train(handle, steps=(1,), loop=handle.loop if how == "with its loop" else None)

    is_named = how == "with its loop"
    assert states(run) == ["whole" if is_named else "failed"]
    assert ("call it once before, or name its loop" in notes(run, 0)) == (not is_named)
    assert bool(asked.calls) == is_named
    assert lab.answers == [ANSWER]


# failures.md: sglang-harm
@pytest.mark.parametrize(
    ("asked", "why"),
    [({}, "SGLANG_PROFILE_V2 is set; its profiler ends the schedulers"),
     ({"by_stage": True, "iterations": {"count": 2}},
      "overwrites its schedulers' memory between two stages")],
    ids=["its second profiler", "stages"],
)  # fmt: skip
def test_what_would_end_the_schedulers_is_not_asked(lab, handle, monkeypatch, asked, why):
    """Nothing is sent: nothing of ours prevents it there."""
    if not asked:
        monkeypatch.setenv("SGLANG_PROFILE_V2", "1")
    run = lab.train(handle, steps=(1,), **asked)

    assert states(run) == ["failed"]
    assert why in notes(run, 0)
    assert handle.tokenizer_manager.called("start_profile") == []
    assert handle.tokenizer_manager.replica.killed_by == ""
