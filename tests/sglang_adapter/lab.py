"""A trainer with one engine of SGLang's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.engine_parts import lab
from tests.engine_parts.lab import on_a_loop, opened, traces_of
from tests.fakes.sglang_engines import SchedulerDiedError


class Lab(lab.Lab):
    """The trainer."""

    engine, died = "sglang", SchedulerDiedError

    def own(self) -> dict[str, Any]:
        return {"profiler_dir": str(self.traces)}


@contextmanager
def living(manager: Any) -> Iterator[Any]:
    """Give *manager* a loop that runs by itself; in the end its gates are open."""
    with on_a_loop() as manager.event_loop:
        yield manager
        for gate in manager.gates.values():
            gate.set()


def steps_in(run: Any, index: int) -> list[list[str]]:
    """Name the forward steps in each trace of a window."""
    return [
        [event["name"] for event in opened(run, one)["traceEvents"] if event.get("ph") == "X"]
        for one in traces_of(run, index)
    ]
