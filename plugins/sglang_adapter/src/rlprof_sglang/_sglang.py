"""The engine `sglang`: two ways to record a replica, chosen by what the engine can do.

If rlprof's code is in the schedulers, our own tools record there: any tool, any rank, results per
rank. Otherwise SGLang's own profiler records.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError, Ready, hookimpl
from rlprof.config import Limits
from rlprof_engine.answers import choose
from rlprof_engine.launching import profiler_dir
from rlprof_engine.replica import Replica
from rlprof_sglang._counters import asked, kept
from rlprof_sglang._engine import CameToRestError, loop_here, reach
from rlprof_sglang._export import NOTES, exported
from rlprof_sglang._installed import advise
from rlprof_sglang._launch import check, engine_launch
from rlprof_sglang._native import Native
from rlprof_sglang._options import SglangOptions
from rlprof_sglang._requests import Requests
from rlprof_sglang._words import SWITCH, longest_s

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path

    from rlprof import Artifact, Capture, Launch, Target, Window, Workers
    from rlprof.types import Place
    from rlprof_engine.answers import EngineRecording
    from rlprof_sglang._facts import Facts
    from rlprof_sglang._server import Engine

_NOT_THERE = (
    "rlprof-sglang is not in its schedulers: install it there, start the engine with "
    f"{SWITCH}=1 in its environment (rlprof.launch gives it), and let SGLANG_PLUGINS admit rlprof"
)


@attrs.define(eq=False)  # identity: plugins are compared
class Sglang(Replica):
    """Record SGLang rollout replicas, natively or in the schedulers."""

    Options = SglangOptions
    name = "sglang"
    process = "scheduler"
    profiler = "SGLang's own profiler"
    notes = NOTES

    advise = staticmethod(hookimpl(advise))
    _kept = staticmethod(kept)
    _asked = staticmethod(asked)

    options: SglangOptions = attrs.field(factory=SglangOptions)
    _engine: Engine | None = None
    _native: Native | None = None
    _lost: str = ""
    """Why the outcome of one of our sessions is unknown; from then on, leave its profiler alone."""

    @hookimpl
    def configure(
        self, place: Place, options: SglangOptions, handle: Any, workers: Workers
    ) -> Launch | Ready | Coroutine[Any, Any, Ready]:
        """At launch, return what to launch the engine with; later, choose how to record it."""
        check(options, workers.tools)
        if place == "launch":
            return engine_launch(options)
        self.options = options
        if isinstance(handle, str) and options.admin_api_key and not options.key:
            name = options.admin_api_key
            raise CaptureError(f"sglang: admin_api_key: {name} is not in this environment; set it")
        engine = self._engine = reach(handle, options.key, workers.loop)
        if engine.is_resting:  # it is called when a window opens, on its own thread
            return _ready(engine)
        return self._unless_it_rests(engine, workers)

    async def _unless_it_rests(self, engine: Engine, workers: Workers) -> Ready:
        with suppress(CameToRestError):
            await self._arrive(engine, workers)
        return _ready(engine)

    async def _arrive(self, engine: Engine, workers: Workers) -> None:
        """Choose the way, and let the schedulers warm up."""
        await engine.look()
        chosen = _way(self.options, engine, workers.tools)
        if chosen == "worker":
            await self._prepare(workers)
        self._way = chosen

    def _here(self, name: str, hook: Coroutine[Any, Any, Any], workers: Workers) -> Any:
        """Run *hook* on a resting engine for as long as it may take: core cannot cut it."""
        if self._engine is None or not self._engine.is_resting:
            return hook
        limits = attrs.asdict(Limits()) | workers.given.get("config", {}).get("limits", {})
        names = ("configure", name) if name == "start" and not self._way else (name,)
        within_s = sum(limits[f"{one}_timeout_s"] for one in names)
        return self._engine.drive(hook, within_s, begins=name == "start")

    async def _start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> EngineRecording:
        if self._lost:
            raise CaptureError(
                f"sglang: the state of an earlier session is unknown ({self._lost}), so its "
                "schedulers are left alone; attach the engine again once it is healthy"
            )
        if self._engine is not None and self._engine.is_late:
            raise CaptureError(
                "sglang: the engine has not answered an earlier call, and is left alone until it "
                "does"
            )
        engine: Engine = self._idle()
        if not self._way:
            await self._arrive(engine, workers)
        recording = await super()._start(window, target, folder, handle, workers)
        recording.unsupported |= _unasked(self.options, engine, workers.tools)
        return recording

    async def _begin_native(
        self, engine: Engine, window: Window, target: Target, run_id: str, workers: Workers
    ) -> Native | None:
        if engine.facts.is_inside:
            await engine.look()
            if engine.facts.is_overdue:  # of a run that has died
                await engine.stop()
                await engine.look()
            if engine.facts.is_profiling:
                raise CaptureError("sglang: somebody else is profiling this engine")
        most_s = longest_s(workers.given.get("config", {}))
        torch = workers.tools.get("torch", {})
        native = self._native = Native(engine, self.options, torch, most_s)
        below = profiler_dir("sglang", self.options.profiler_dir, target)
        await native.start(window, target, below, run_id)
        if native.state == "idle":  # answered after our stop, and ended again
            self._lost = ""
            return None
        return native

    def _requests_of(self, engine: Engine, handle: Any) -> Requests:
        return Requests(handle, has_metrics=engine.facts.has_metrics)

    async def _stop(self, window: Window, folder: Path, workers: Workers) -> None:
        if self._native is not None:
            self._lost = "its stop was not answered"  # it may be, after core gave up on us
        await super()._stop(window, folder, workers)

    async def _end_native(self, native: Native, folder: Path) -> None:
        try:
            await native.stop(folder)
        except CaptureError as exc:
            self._lost = str(exc) if native.state == "unknown" else ""
            raise
        self._lost = "its start was not answered" if native.state == "unknown" else ""

    def _noted(self, engine: Engine, native: Native | None) -> dict[str, Any]:
        return {
            "facts": {**attrs.asdict(engine.facts), "workers": engine.facts.workers},
            **({} if native is None else native.notes),
            "lost": self._lost,
            "merged": self.options.native_merge,
            "by_stage": self.options.by_stage,
        }

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Make traces of SGLang's files and requests, and a summary of the answers."""
        return exported(capture, folder, out)


def _ready(engine: Engine) -> Ready:
    """Have core call a resting Engine on its user's thread, and never wait on the engine's loop.

    If an event loop runs on that thread, it must not wait, so another thread calls the Engine.
    """
    return Ready(
        lambda: "thread" if engine.is_resting and loop_here() is None else "process",
        lambda: engine.loop,
    )


def _not_there(facts: Facts) -> str:
    """Say why rlprof cannot record in the schedulers, and what to do."""
    if not facts.lacks:
        return _NOT_THERE
    return (
        f"this SGLang has no {', '.join(facts.lacks)}: install an rlprof-sglang that knows release "
        f"{facts.version or 'of this engine'}"
    )


def _way(options: SglangOptions, engine: Engine, tools: Mapping[str, Any]) -> str:
    """Choose the way; raise CaptureError if neither is possible."""
    inside = ""
    if options.needs_native:
        inside = f"{', '.join(options.needs_native)}: SGLang's own profiler does that"
    elif not engine.facts.is_inside:
        inside = _not_there(engine.facts)
    both = ("schedulers", inside), (Sglang.profiler, "")
    return choose("sglang", options.way, tools, *both)


def _unasked(options: SglangOptions, engine: Engine, tools: Mapping[str, Any]) -> dict[str, str]:
    """Report that SGLang's profiler records instead of the tools, though nobody asked for it."""
    if options.way != "auto" or options.needs_native or not tools or engine.facts.is_inside:
        return {}
    return {"tool: torch": f"SGLang's own profiler records, unguarded; {_not_there(engine.facts)}"}
