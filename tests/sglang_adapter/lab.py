"""A trainer with one engine of SGLang's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.engine_parts import lab
from tests.engine_parts.lab import opened, traces_of
from tests.fakes.sglang_engines import SchedulerDiedError

NEW, OLD = "sglang==0.5.21", "sglang==0.5.18"
"""One whose schedulers have no ranks of their own, and the oldest."""


class Lab(lab.Lab):
    """The trainer."""

    engine, died = "sglang", SchedulerDiedError

    def own(self) -> dict[str, Any]:
        return {"profiler_dir": str(self.traces)}


@contextmanager
def living(manager: Any) -> Iterator[Any]:
    """Give *manager* a loop that runs on a thread of its own, as a server's does."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    manager.event_loop = loop
    try:
        yield manager
    finally:
        for gate in manager.gates.values():
            gate.set()
        asyncio.run_coroutine_threadsafe(_ended(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _ended() -> None:
    """Cancel what still waits for a dead scheduler."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)


def steps_in(run: Any, index: int) -> list[list[str]]:
    """Name the forward steps in each trace of a window."""
    return [
        [event["name"] for event in opened(run, one)["traceEvents"] if event.get("ph") == "X"]
        for one in traces_of(run, index)
    ]
