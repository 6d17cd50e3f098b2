"""One replica of an engine and its windows: what each engine plugin does alike."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from rlprof import CaptureError, hookimpl
from rlprof_engine.answers import EngineRecording, answers_in, beyond_native, other_number
from rlprof_engine.counters import Polled
from rlprof_engine.frontend import Served, parted

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping
    from pathlib import Path

    from rlprof import Target, Window, Workers
    from rlprof_engine.engine import Engine
    from rlprof_engine.requests import Requests


@attrs.define(eq=False)  # identity: plugins are compared
class Replica:
    """Records the windows of one replica, in the processes of its engine or natively."""

    drives = True

    name: ClassVar[str]
    """The name of the plugin."""
    process: ClassVar[str]
    """The engine's name for one of its processes."""
    profiler: ClassVar[str]
    """The name of the engine's own profiler."""
    notes: ClassVar[str]
    """The file of the notes, in the window's folder."""
    _kept: ClassVar[staticmethod[[Any], Mapping[str, float]]]
    """Reads the counters of an engine in this process."""
    _asked: ClassVar[staticmethod[[str], Mapping[str, float]]]
    """Asks a server for its counters, by its address."""

    options: Any
    _engine: Any = None
    """How to reach the engine; None: not configured."""
    _way: str = ""
    """The way to record; empty: not chosen yet."""
    _native: Any = None
    """The open window of the engine's own profiler."""
    _answers: dict[str, Any] = attrs.field(factory=dict)
    """The answers to the orders of the window that is open in the processes."""
    _requests: Requests | Served | None = None
    _frontend: list[dict[str, Any]] = attrs.field(factory=list)
    """The answers of a server's own process to the last order."""
    _server: Polled | None = None
    """The counters of a server."""

    def counters(self, handle: Any) -> Mapping[str, float]:
        """Return how many requests run and wait, the largest batch, and the use of the KV cache."""
        if not isinstance(handle, str):
            return self._kept(handle)
        self._server = self._server or Polled(partial(self._asked, handle.rstrip("/")))
        return self._server.news()

    @hookimpl
    def start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> Any:
        """Begin to record, by the way that was chosen."""
        return self._here("start", self._start(window, target, folder, handle, workers), workers)

    @hookimpl
    def stop(self, window: Window, folder: Path, workers: Workers) -> Any:
        """End the recording, and write the notes that its export needs."""
        return self._here("stop", self._stop(window, folder, workers), workers)

    def _here(self, _: str, hook: Coroutine[Any, Any, Any], __: Workers) -> Any:
        """Prepare, on the thread that called it, a hook of that name; return what core awaits."""
        return hook

    async def _prepare(self, workers: Workers) -> None:
        """Let the processes warm up."""
        self._in_state("ready", await self._order(workers.prepare()))

    def _idle(self) -> Any:
        """Return the engine; raise CaptureError if it cannot open a window."""
        if self._engine is None:
            raise CaptureError(f"{self.name}: was not configured")
        if self._native is not None or self._answers:
            raise CaptureError(f"{self.name}: a window is open already")
        return self._engine

    async def _start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> EngineRecording:
        engine: Engine = self._idle()
        recording = EngineRecording(applied={"way": self._way})
        if engine.facts.has_layout:
            there = engine.facts.workers
            recording.unsupported |= other_number(there, workers, f"{self.process}s")
        if self._way == "worker":
            recording.applied |= await self._begin(window, workers)
        else:
            run_id = json.loads((folder.parent / "capture.json").read_text())["run_id"]
            native = await self._begin_native(engine, window, target, run_id, workers)
            if native is None:
                return recording
            recording.applied |= native.applied
            recording.unsupported |= native.unsupported
            recording.unsupported |= beyond_native(workers, f"{self.process}s", self.profiler)
        if self.options.requests:
            if self._way == "worker" and engine.facts.kind == "http":
                self._requests = Served(self._frontend)
            else:
                self._requests = self._requests_of(engine, handle)
            recording.unsupported |= self._requests.unsupported
            await engine.run(self._requests.start)
        return recording

    async def _begin(self, window: Window, workers: Workers) -> dict[str, Any]:
        """Begin in the processes; return what was applied."""
        answers = self._answers = {"began": []}  # the end is sent in any case
        answers["began"] = await self._order(workers.begin(window))
        there = self._in_state("recording", answers["began"])
        applied: dict[str, Any] = {"workers": [one["worker"] for one in there]}
        if self.options.iterations is not None:
            applied["iterations"] = attrs.asdict(self.options.iterations)
        return applied

    async def _begin_native(
        self, engine: Any, window: Window, target: Target, run_id: str, workers: Workers
    ) -> Any:
        """Begin with the engine's own profiler, kept in `_native`; None: it has ended again."""
        raise NotImplementedError

    def _requests_of(self, engine: Any, handle: Any) -> Requests:
        """Return what watches the requests of an engine in this process."""
        raise NotImplementedError

    async def _stop(self, window: Window, folder: Path, workers: Workers) -> None:
        engine: Engine | None = self._engine
        native, self._native = self._native, None
        requests, self._requests = self._requests, None
        answers, self._answers = self._answers, {}
        if engine is None or (native is None and not answers):
            return
        self._write_notes(engine, folder, native, answers)  # core may give up on the stop
        try:
            if native is not None:
                await self._end_native(native, folder)
            else:
                answers["ended"] = await self._order(workers.end(window))
                if isinstance(requests, Served):
                    requests.answers = self._frontend
        finally:
            self._write_notes(engine, folder, native, answers)
            if requests is not None:
                requests.stop(folder, engine.loop)

    async def _end_native(self, native: Any, folder: Path) -> None:
        """End the engine's own profiler, and fetch its files."""
        await native.stop(folder)

    def _write_notes(
        self, engine: Engine, folder: Path, native: Any, answers: Mapping[str, Any]
    ) -> None:
        found = {"way": self._way, "facts": attrs.asdict(engine.facts), "answers": answers}
        found |= self._noted(engine, native)
        with suppress(OSError):
            (folder / self.notes).write_text(json.dumps(found, default=str))

    def _noted(self, _: Any, __: Any) -> dict[str, Any]:
        """Return what an engine and its window of the native profiler add to the notes."""
        return {}

    async def _order(self, order: str) -> list[dict[str, Any]]:
        """Send an order to the processes; return their answers, of all or of one per replica."""
        chosen = self.options.iterations
        message = {
            "order": order,
            "iterations": {} if chosen is None else attrs.asdict(chosen),
            "requests": self.options.requests and self._engine.facts.kind == "http",
        }
        with self._failing(f"its {self.process}s cannot be reached"):
            found = await self._engine.order(json.dumps(message))
        answers, self._frontend = parted(found)
        return answers

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Raise why a call failed: the engine may have died since the window began to open."""
        try:
            yield
        except Exception as exc:
            if self._engine.is_errored:
                raise CaptureError(f"{self.name}: the engine is dead") from exc
            if isinstance(exc, CaptureError):
                raise
            text = f"{self.name}: {what}: {type(exc).__name__}: {exc}"
            raise CaptureError(text[:500]) from exc

    def _in_state(self, state: str, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return answers_in(answers, state, f"{self.name}: no {self.process} records")
