"""How the benchmarks of the adapters record an engine, and what is in flight meanwhile."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import rlprof

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from rlprof_run import CaptureResult

_LENGTH = 500
"""Tokens of a request; another one follows it, so that as many are in flight at any time."""
_CAPTURES = {"worker": 2, "native": 1}
"""By phase: the worker's own, and the engine's."""
_GOOD = ("recording", "exporting", "whole")


class Flow:
    """Requests in flight, and when their tokens came."""

    def __init__(
        self, stream: Callable[[str, int], AsyncIterator[int]], name: str, requests: int
    ) -> None:
        self.times: list[float] = []
        self.tokens = 0
        self._came = asyncio.Event()
        asked = (self._requests(stream, f"{name}-{n}", leads=not n) for n in range(requests))
        self._tasks = [asyncio.create_task(one) for one in asked]

    async def _requests(
        self, stream: Callable[[str, int], AsyncIterator[int]], name: str, *, leads: bool
    ) -> None:
        for before in itertools.count(0, _LENGTH):
            async for tokens in stream(f"{name} {before}", _LENGTH):
                self.times.append(time.perf_counter())
                if leads:
                    self.tokens = before + tokens
                    self._came.set()

    async def until(self, tokens: int) -> None:
        """Wait until so many engine steps have given a token."""
        while self.tokens < tokens:
            self._came.clear()
            await self._came.wait()

    async def end(self) -> None:
        """Abort what is in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Way(Protocol):
    """One way to record."""

    async def begin(self) -> None:
        """Begin."""

    async def end(self) -> None:
        """End; generation goes on."""

    def events(self) -> int:
        """Count what it has recorded."""


class Ours:
    """rlprof: a phase of a step of its own."""

    def __init__(self, prof: Any, phase: str) -> None:
        self._prof = prof
        self._name = phase
        self._phase: Any = None

    async def begin(self) -> None:
        self._prof.step((self._prof.current_step or 0) + 1)
        self._phase = self._prof.phase(self._name)
        await self._phase.__aenter__()

    async def end(self) -> None:
        await self._phase.__aexit__(None, None, None)

    async def exported(self) -> None:
        """Wait until helper processes have done their work, which is not measured here."""
        while [one.state for one in self._captures()] != ["whole"] * _CAPTURES[self._name]:
            await asyncio.sleep(0.5)
            bad = [one.notes for one in self._captures() if one.state not in _GOOD]
            assert not bad, bad

    def events(self) -> int:
        found = [a.path for one in self._captures() for a in one.artifacts if a.kind == "trace"]
        return max(count(Path(self._prof.run_dir) / path) for path in found)

    def _captures(self) -> list[CaptureResult]:
        step = self._prof.current_step
        found = rlprof.read(self._prof.run_dir).captures
        return [one for one in found if one.window.start_step == step]


def count(file: Path) -> int:
    """Count the events with a duration in a trace that Kineto has laid out."""
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        return sum(b'"ph": "X"' in line for line in lines)
