"""Engines that profile as each generation of vLLM does; each token is a profiler step."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs

from rlprof_vllm import inside
from tests.fakes.engines import Asked, kineto


class EngineDeadError(Exception):
    """The engine's core has died."""


class ProfilerAlreadyActiveError(Exception):
    """Another session is active: the error of vLLM since 0.32."""


@attrs.define
class Profiler:
    """The profilers of an engine's workers: one state, a file for each of them."""

    directory: str
    workers: int = 1
    is_guarded: bool = True
    """Since 0.32 a second start is an error; before, it was ignored."""
    is_sticky: bool = False
    """From 0.17 to 0.31 the first session's prefix stayed."""
    is_gzipped: bool = False
    trace: str = "rank{rank}"
    """The name of a worker's trace, before the time."""
    table: str = "{prefix}rank{rank}.profiler_out.txt"
    """The name of the table next to it; empty: there is none."""
    first_prefix: str | None = None
    is_active: bool = False
    _prefix: str | None = None
    _steps: list[tuple[int, str]] = attrs.field(factory=list)
    _is_session: bool = False
    """Since 0.32: whether `stop_profile` is due, though the workers may have stopped."""

    def start(self, profile_prefix: str | None = None, **_: Any) -> None:
        if self._is_session and self.is_guarded:
            raise ProfilerAlreadyActiveError("a profiling session is active")
        self._is_session = True
        if self.is_active:
            return
        if self.first_prefix is None:
            self.first_prefix = profile_prefix or ""
        self._prefix = self.first_prefix if self.is_sticky else profile_prefix
        self._steps, self.is_active = [], True

    def step(self, name: str) -> None:
        if self.is_active:
            self._steps.append((time.time_ns(), name))

    def stop(self) -> None:
        """End the session; where none is, nothing happens."""
        was_active, self.is_active, self._is_session = self.is_active, False, False
        with suppress(OSError):  # vLLM only logs a warning in the worker
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            for rank in range(self.workers if was_active else 0):
                self._write(rank)

    def _write(self, rank: int) -> None:
        prefix = f"{self._prefix}_" if self._prefix else ""
        text = kineto(self._steps, 4000 + rank, rank)
        called = self.trace.format(rank=rank)
        name = f"{prefix}{called}.{time.time_ns()}.pt.trace.json"
        if self.is_gzipped:
            name, text = f"{name}.gz", gzip.compress(text)
        Path(self.directory, name).write_bytes(text)
        if self.table:
            table = self.table.format(prefix=prefix, rank=rank)
            Path(self.directory, table).write_text(f"{len(self._steps)} steps\n")


def state(name: str, prompt_len: int, wanted: int, generated: int = 0) -> Any:
    """Return what a frontend keeps of a request."""
    now = time.monotonic()
    stats = SimpleNamespace(
        arrival_time=time.time(), queued_ts=now, scheduled_ts=now, first_token_ts=now,
        last_token_ts=now, num_generation_tokens=generated, num_preemptions=0,
    )  # fmt: skip
    return SimpleNamespace(
        request_id=name, prompt_len=prompt_len, stats=stats, max_tokens_param=wanted
    )


class Stand(Asked):
    """The state behind the methods of every fake engine, which a test may change."""

    def __init__(
        self, profiler: Profiler | None, config: Any, processor: Any, workers: Sequence[Any] = ()
    ) -> None:
        super().__init__()
        self.workers = workers
        """The workers that have rlprof's code."""
        self.profiler = profiler
        self.is_dead = self.is_asleep = False
        self._processor = processor
        self._config = config
        self._answered = 0

    def generate(self, prompt: str, tokens: int = 4) -> str:
        if self.is_dead:
            raise EngineDeadError("EngineCore encountered an issue")
        self._answered += 1
        name, states = f"r{self._answered}", self._processor.request_states
        states[name] = state(name, len(prompt), tokens)
        stats = states[name].stats
        for number in range(tokens):
            if self.profiler is not None:
                self.profiler.step(f"execute_context_{int(not number)}(1)_generation_1(1)")
            for worker in self.workers:
                worker.execute_model(number)
            stats.num_generation_tokens += 1
        states.pop(name)
        return prompt[::-1] * tokens

    def die(self) -> None:
        """Die like a process that is killed: no more files are written."""
        self.is_dead = True
        if self.profiler is not None:
            self.profiler.workers = 0

    async def _later(self, method: str, given: dict[str, Any]) -> Any:
        gate = self.gates.get(method)
        if gate is not None:
            while not gate.is_set():  # like a task that waits for the engine's core
                await asyncio.sleep(0.01)
        return self._answer(method, given, waited=True)

    def _answer(self, method: str, given: dict[str, Any], *, waited: bool = False) -> Any:
        given = {name: value for name, value in given.items() if name != "self"}
        self.calls.append((method, given))
        if method in self.gates and not waited:
            self.gates[method].wait(30)
        if method in self.raises:
            raise self.raises[method]
        if self.is_dead:
            raise EngineDeadError("EngineCore encountered an issue")
        return getattr(self, f"_{method}")(**given)

    def _start_profile(self, **given: Any) -> None:
        assert self.profiler is not None
        self.profiler.start(**given)

    def _stop_profile(self) -> None:
        assert self.profiler is not None
        self.profiler.stop()

    def _is_sleeping(self) -> bool:
        return self.is_asleep

    def _is_paused(self) -> bool:
        return False

    def _collective_rpc(self, method: str, args: Any = (), **_: Any) -> list[Any]:
        if method == "__dir__":  # which cannot fail in any worker
            return [["execute_model", inside.METHOD] for _ in self.workers] or [["execute_model"]]
        assert self.workers, "a call that can shift the answers of all later ones"
        assert method == inside.METHOD
        return [inside.obey(SimpleNamespace(worker=one), *args) for one in self.workers]
