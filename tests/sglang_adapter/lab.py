"""A trainer of one process with one attached engine of SGLang's, and what it left."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rlprof
from tests.fakes.sglang_engines import SchedulerDiedError

NEW, OLD = "sglang==0.5.21", "sglang==0.5.12"
"""One that is asked with an object, and one that is asked with keywords."""
ANSWER = "tsej" * 4
"""What a healthy engine answers to `jest`."""


class Lab:
    """The trainer."""

    def __init__(self, tmp_path: Any) -> None:
        self._places = {"run_dir": str(tmp_path / "runs"), "scratch_dir": str(tmp_path / "scratch")}
        self.traces = tmp_path / "traces"
        self.answers: list[str] = []
        """What the engine said in each step, or the name of what it raised."""

    def train(
        self, handle: Any, *, inside: Any = None, before: Any = None, steps: Any = (1, 2, 3),
        limits: Any = None, tool: Any = (), ranks: Any = None, loop: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        """Train, with a rollout in each step; return the run that was left.

        *before* and *inside* are called with the step, before its rollout and in the midst of it.
        """
        options = {"profiler_dir": str(self.traces)} | options
        config = self._places | {
            "steps": list(steps),
            "roles": {"rollout": {"engine": "sglang", "phases": ["rollout"], "tool": tool}},
            "engines": {"sglang": {k: one for k, one in options.items() if one is not None}},
            "limits": {"start_timeout_s": 60, "stop_timeout_s": 60} | (limits or {}),
        }
        if isinstance(tool, tuple):
            config["roles"]["rollout"]["tool"] = list(tool)
        with rlprof.open(config, role="trainer") as prof:
            self.run_dir = prof.run_dir
            prof.attach(handle, role="rollout", ranks=ranks, loop=loop)
            for step in prof.steps(steps):
                if before is not None:
                    before(step)
                with prof.phase("rollout"):
                    self._generate(handle)
                    if inside is not None:
                        inside(step)
                        self._generate(handle)
        return rlprof.read(prof.run_dir)

    async def train_on_a_loop(self, handle: Any) -> Any:
        """Train a step in a coroutine; tokens are asked for on another thread."""
        config = self._places | {
            "steps": [1],
            "roles": {"rollout": {"engine": "sglang", "phases": ["rollout"], "tool": []}},
            "engines": {"sglang": {"profiler_dir": str(self.traces)}},
        }
        with rlprof.open(config, role="trainer") as prof:
            prof.attach(handle, role="rollout")
            for _ in prof.steps((1,)):
                async with prof.phase("rollout"):
                    self.answers.append(await asyncio.to_thread(handle.generate, "jest"))
        return rlprof.read(prof.run_dir)

    def _generate(self, handle: Any) -> None:
        if not hasattr(handle, "generate"):
            return
        try:
            self.answers.append(handle.generate("jest"))
        except SchedulerDiedError as exc:
            self.answers.append(type(exc).__name__)


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


def wait_for(condition: Any) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def states(run: Any) -> list[str]:
    return [one.state for one in run.captures]


def notes(run: Any, index: int) -> str:
    return " ".join(run.captures[index].notes)


def traces_of(run: Any, index: int) -> list[Any]:
    found = run.captures[index].artifacts
    return sorted((one for one in found if ".pt.trace.json" in one.path), key=lambda one: one.path)


def opened(run: Any, artifact: Any) -> Any:
    """Return what is in a trace."""
    return json.loads(gzip.decompress((run.path / artifact.path).read_bytes()))


def steps_in(run: Any, index: int) -> list[list[str]]:
    """Name the forward steps in each trace of a window."""
    return [
        [event["name"] for event in opened(run, one)["traceEvents"] if event.get("ph") == "X"]
        for one in traces_of(run, index)
    ]
