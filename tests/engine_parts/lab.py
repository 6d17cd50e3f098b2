"""A one-process trainer with an attached engine, or one that only calls a plugin's hooks."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs

import rlprof
from rlprof import plugins
from rlprof.rundir import Here
from rlprof.session._loops import Link

if TYPE_CHECKING:
    import pytest

    from tests.fakes.engines import Asked

ANSWER = "tsej" * 4
"""What a healthy engine answers to `jest`."""


class Lab:
    """A trainer with one engine and its options."""

    def __init__(self, tmp_path: Any, engine: str, **options: Any) -> None:
        self._engine, self._options = engine, options
        self._places = {"run_dir": str(tmp_path / "runs"), "scratch_dir": str(tmp_path / "scratch")}
        self.answers: list[str] = []
        """What the engine said in each step."""

    def train(
        self, handle: Any, *, before: Any = None, steps: Any = (1, 2, 3), limits: Any = None
    ) -> Any:
        """Train; call *before* before each rollout, with the step."""
        config = self._config(steps)
        config["limits"] = {"start_timeout_s": 60, "stop_timeout_s": 60} | (limits or {})
        with rlprof.open(config, role="trainer") as prof:
            self.run_dir = prof.run_dir
            prof.attach(handle, role="rollout")
            for step in prof.steps(steps):
                if before is not None:
                    before(step)
                with prof.phase("rollout"):
                    self.answers.append(handle.generate("jest"))
        return rlprof.read(prof.run_dir)

    async def train_on_a_loop(
        self, handle: Any, *, steps: Any = (1,), loop: Any = None, after: Any = None
    ) -> Any:
        """Train in a coroutine; tokens are asked for on another thread, then *after* is awaited."""
        with rlprof.open(self._config(steps), role="trainer") as prof:
            prof.attach(handle, role="rollout", loop=loop)
            for _ in prof.steps(steps):
                async with prof.phase("rollout"):
                    self.answers.append(await asyncio.to_thread(handle.generate, "jest"))
                if after is not None:
                    await after()
        return rlprof.read(prof.run_dir)

    def _config(self, steps: Any) -> dict[str, Any]:
        return self._places | {
            "steps": list(steps),
            "roles": {"rollout": {"engine": self._engine, "phases": ["rollout"], "tool": []}},
            "engines": {self._engine: self._options},
        }


def orders(
    run: str = "/nowhere", config: Any = None, tools: Any = ("torch",), **said: Any
) -> rlprof.Workers:
    """Make the object with which an engine's plugin writes orders."""
    given = {
        "run": run, "config": config or {}, "role": "rollout", "replica": 0, "world_size": 2,
        "leader": attrs.asdict(rlprof.Leader(Here.now(), "")),
    }  # fmt: skip
    return rlprof.Workers({name: {} for name in tools}, given=given, **said)


class Follower:
    """Notes what a process of an engine records; it may fail in a call."""

    def __init__(self, fails: str = "") -> None:
        self.seen: list[str] = []
        self._fails = fails

    def push(self, name: str) -> None:
        self._note("push", name)

    def pop(self) -> None:
        self._note("pop", "")

    def end(self, _: object, reason: str) -> None:
        self._note("end", reason)

    def _note(self, what: str, said: str) -> None:
        self.seen.append(said or what)
        if what == self._fails:
            raise RuntimeError(f"no {what}")


class Driven:
    """One plugin whose hooks are called as core does, in `folder`; no session is opened."""

    def __init__(
        self, patch: pytest.MonkeyPatch, home: Path, plugin: Any, handle: Any,
        workers: rlprof.Workers | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.followers: dict[int, Follower] = defaultdict(Follower)
        patch.setattr(rlprof.Order, "follower", lambda _, number, where: self.followers[number])
        patch.setattr(rlprof.Order, "begin", lambda *_: "")
        self.folder, self.out = home / "window" / "raw", home / "out"
        for folder in (self.folder, self.out):
            folder.mkdir(parents=True)
        (self.folder.parent / "capture.json").write_text('{"run_id": "run-1"}')
        self._hooks, self._link = plugins.hooks(plugin()), Link(handle)
        window, target = rlprof.Window(7, 8, "rollout"), rlprof.Target("rollout", replica=0)
        asked = json.loads(json.dumps(options, default=attrs.asdict))
        self._given = {
            "place": "process", "handle": handle, "workers": workers or orders(), "window": window,
            "target": target, "options": plugin.Options(**options), "folder": self.folder,
            "capture": rlprof.Capture("run-1", target, window, "an_engine", "host", 1, asked),
            "out": self.out,
        }  # fmt: skip

    def call(self, hook: str) -> Any:
        return self._link.settled(lambda: getattr(self._hooks, hook)(**self._given))

    def errors(self, *hooks: str) -> list[str]:
        """Call *hooks*; return the messages of those that fail."""
        said = []
        for hook in hooks:
            try:
                self.call(hook)
            except rlprof.CaptureError as exc:
                said.append(str(exc))
        return said

    def assert_told(self, engine: str, calls: Asked, hook: str, what: str) -> None:
        """Check the errors of hooks in the wrong order, and of an engine that does not answer."""
        assert self.errors("stop", "start") == [f"{engine}: was not configured"]
        assert self.errors("configure", "stop") == []
        assert not list(self.folder.iterdir())
        assert self.errors("start", "start") == [f"{engine}: a window is open already"]
        calls.raises[hook] = KeyError("no answer")
        assert self.errors("stop") == [f"{engine}: {what} be reached: KeyError: 'no answer'"]
        (summary,) = [made for made in self.call("export") if made.kind == "files"]
        assert summary.status == "partial"
        assert "no process of the engine answered" in summary.note

    def record(self, work: Callable[[], Any]) -> Any:
        """Record *work* in a window; return the results of the hooks and the notes."""
        ready, said = self.call("configure"), self.call("start")
        work()
        self.call("stop")
        (notes,) = (json.loads(file.read_bytes()) for file in self.folder.glob("*.json"))
        made = {
            one.path.removeprefix(self._given["capture"].stem): one for one in self.call("export")
        }
        return SimpleNamespace(ready=ready, said=said, notes=notes, made=made)


async def all_ended() -> None:
    """Cancel the other tasks of this loop, and wait for their end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)


def states(run: Any) -> list[str]:
    return [one.state for one in run.captures]


def notes(run: Any, index: int) -> str:
    return " ".join(run.captures[index].notes)


def traces_of(run: Any, index: int) -> list[Any]:
    found = run.captures[index].artifacts
    return sorted((one for one in found if ".pt.trace.json" in one.path), key=lambda one: one.path)


def opened(run: Any, artifact: Any) -> Any:
    return json.loads(gzip.decompress((run.path / artifact.path).read_bytes()))
