"""Engines on the trainer's own event loop: code on that loop must not wait for them."""

import asyncio
import threading
from contextlib import suppress

import pytest

import rlprof
from tests.cases import cases
from tests.core.steps import train
from tests.core.test_on_demand import ask
from tests.fakes import engines

pytestmark = pytest.mark.slow

BOUND_S = 60
"""Longer than anything takes here; a wait without end fails after it."""
LATE = {"configure_timeout_s": 60, "start_timeout_s": 60, "stop_timeout_s": 60}


@pytest.fixture(name="given")
def _given(config):
    """Return a function that makes a config with an engine that lives on a loop."""
    engines.register()
    engines.calls.clear()

    def make(**changes):
        roles = {"rollout": {"engine": "guest", "phases": ["rollout"], "tool": []}}
        return config(roles=roles, limits=LATE, **({"steps": [1, 2]} | changes))

    return make


async def until(*call):
    while call not in engines.calls:
        await asyncio.sleep(0.01)


async def ready():
    while any(one.name in ("rlprof-attach", "rlprof-away") for one in threading.enumerate()):
        await asyncio.sleep(0.01)


async def rollout(prof):
    async with prof.phase("rollout"):
        pass


async def cancelled(coroutine, when):
    task = asyncio.create_task(coroutine)
    await when
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def recorded(config, body):
    with rlprof.open(config, role="trainer") as prof:
        prof.attach({"loop": asyncio.get_running_loop()})
        await ready()
        await body(prof)
    return prof


def states(prof):
    return {c.window.id: c.state for c in rlprof.read(prof.run_dir).captures}


# failures.md: vllm-cut
@cases("hook, notes", ("start", ("closed early: its phase was never entered",)), ("stop", ()))
def test_a_phase_cancelled_at_its_start_or_end_leaves_the_next_window_whole(given, hook, notes):
    """A phase cancelled at its start or end closes its window; the next one is whole."""

    async def body(prof):
        prof.step(1)
        await cancelled(rollout(prof), until("begin", hook, "1/rollout"))
        await ready()
        prof.step(2)
        await rollout(prof)

    prof = asyncio.run(recorded(given(), body))

    assert states(prof) == {"1/rollout": "whole", "2/rollout": "whole"}
    run = rlprof.read(prof.run_dir)
    assert run.captures[0].notes == notes
    phases = [(span.name, span.step) for span in run.spans() if span.kind == "phase"]
    assert hook == "start" or phases == [("rollout", 1), ("rollout", 2)]


# failures.md: vllm-cut
def test_close_does_not_wait_for_an_engine_that_stops_on_its_loop(given):
    """A session closed on the engine's loop does not wait for its stop; the window is lost."""

    async def body(prof):
        prof.step(1)
        await cancelled(rollout(prof), until("begin", "stop", "1/rollout"))

    async def main():
        prof = await recorded(given(), body)
        closed = list(engines.calls)
        await until("stop", "1/rollout")
        return prof, closed

    prof, closed = asyncio.run(main())

    assert ("stop", "1/rollout") not in closed
    assert states(prof) == {"1/rollout": "lost"}


# failures.md: engine-loop
def test_a_phase_that_blocks_the_engines_loop_is_not_recorded(given):
    """A blocking phase on the engine's own loop fails its window; an async phase is whole."""

    async def body(prof):
        train(prof, [1])
        prof.step(2)
        await rollout(prof)

    prof = asyncio.run(recorded(given(), body))

    assert states(prof) == {"1/rollout": "failed", "2/rollout": "whole"}
    assert "on the engine's own event loop" in rlprof.read(prof.run_dir).captures[0].notes[0]


def test_a_full_executor_does_not_delay_a_phase(given):
    """A phase is recorded while the loop's default executor is full."""
    gate = threading.Event()

    async def body(prof):
        loop = asyncio.get_running_loop()
        waiting = [loop.run_in_executor(None, gate.wait) for _ in range(64)]
        prof.step(1)
        try:
            await asyncio.wait_for(rollout(prof), BOUND_S)
        finally:
            gate.set()
        await asyncio.gather(*waiting)

    prof = asyncio.run(recorded(given(), body))

    assert states(prof) == {"1/rollout": "whole"}


def test_a_request_with_its_own_options_is_configured_off_the_loop(given):
    """A request with its own options configures the engine off the loop and is recorded."""

    async def body(prof):
        ask(prof, role="rollout", options={"guest": {"speed": 9}})
        prof.step(1)
        await rollout(prof)

    prof = asyncio.run(recorded(given(steps=[9]), body))

    assert states(prof) == {"1/rollout": "whole"}
    assert engines.calls.count(("configure", "")) == 2
