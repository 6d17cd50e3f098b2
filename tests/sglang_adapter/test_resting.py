"""An Engine whose loop rests is asked on it; no call for tokens may meet another on that loop."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import pytest

from rlprof import CaptureError
from rlprof_sglang._engine import reach


@pytest.fixture(name="engine")
def _engine():
    """Return an engine with a loop of its own, which does not run."""
    loop = asyncio.new_event_loop()
    manager = SimpleNamespace(event_loop=loop, start_profile=None)
    yield reach(SimpleNamespace(tokenizer_manager=manager, loop=loop))
    loop.close()


async def _answer():
    return "answered"


def _elsewhere(function):
    """Call it on a thread of its own; return what came of it."""
    found = []

    def call():
        try:
            found.append(function())
        except CaptureError as exc:
            found.append(exc)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(60)
    return found[0]


def test_a_loop_that_the_main_thread_asks_on_is_run_by_no_other(engine):
    """A call for tokens that came meanwhile would fail there, and training with it."""
    first = engine.drive(_answer(), 5)

    other = _elsewhere(lambda: engine.drive(_answer(), 5))

    assert first == "answered"
    assert isinstance(other, CaptureError)
    assert "main thread's" in str(other)


def test_a_loop_that_another_thread_asked_on_is_run_by_the_next(engine):
    """Training's own thread may have ended, and its window is still to be closed."""
    first = _elsewhere(lambda: engine.drive(_answer(), 5))

    assert first == "answered"
    assert engine.drive(_answer(), 5) == "answered"


def test_a_loop_is_not_run_within_another(engine):
    """The call says what to do: enter the phase on the engine's own loop."""

    async def within():
        return engine.drive(_answer(), 5)

    with pytest.raises(CaptureError, match="async with"):
        asyncio.run(within())
