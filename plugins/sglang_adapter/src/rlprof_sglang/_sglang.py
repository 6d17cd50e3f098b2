"""The engine `sglang`: two ways to record a replica, chosen by what the engine can do.

If rlprof's code is in the schedulers, our own tools record there: any tool, any rank, results per
rank. Otherwise SGLang's own profiler records.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError, Ready, hookimpl
from rlprof_engine.answers import EngineRecording, answers_in, beyond_native, other_number
from rlprof_engine.counters import Counters
from rlprof_engine.frontend import Served, parted
from rlprof_engine.launching import profiler_dir
from rlprof_sglang._counters import asked, kept
from rlprof_sglang._engine import CameToRestError, loop_here, reach, told
from rlprof_sglang._export import NOTES, exported
from rlprof_sglang._installed import advise
from rlprof_sglang._launch import check, engine_launch
from rlprof_sglang._native import Native
from rlprof_sglang._options import SglangOptions
from rlprof_sglang._requests import Requests
from rlprof_sglang._ways import NATIVE, unasked, way
from rlprof_sglang._words import longest_s

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path

    from rlprof import Artifact, Capture, Launch, Target, Window, Workers
    from rlprof.types import Place
    from rlprof_sglang._server import Engine


_USUAL = {"configure": 60.0, "start": 5.0, "stop": 120.0}
"""The limits if none are given."""
_NOBODY = "sglang: no scheduler records"


@attrs.define(eq=False)  # identity: plugins are compared
class Sglang:
    """Record SGLang rollout replicas, natively or in the schedulers."""

    Options = SglangOptions
    drives = True

    advise = staticmethod(hookimpl(advise))

    options: SglangOptions = attrs.field(factory=SglangOptions)
    _engine: Engine | None = None
    _way: str = ""
    _native: Native | None = None
    _requests: Requests | Served | None = None
    _frontend: list[dict[str, Any]] = attrs.field(factory=list)
    """The answers of a server's own process to the last order."""
    _answers: dict[str, Any] = attrs.field(factory=dict)
    _counters: Counters = attrs.field(factory=partial(Counters, kept, asked))
    _lost: str = ""
    """Why the outcome of one of our sessions is unknown; from then on, leave its profiler alone."""

    def counters(self, handle: Any) -> Mapping[str, float]:
        """Say how many requests run and wait, the largest batch, and how full the KV cache is."""
        return self._counters.read(handle)

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
        chosen = way(self.options, engine, workers.tools)
        if chosen == "worker":
            answers_in(await self._tell(engine, workers.prepare()), "ready", _NOBODY)
        self._way = chosen

    @hookimpl
    def start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> Any:
        """Begin to record, by the way that was chosen."""
        hooks = ("start",) if self._way else ("configure", "start")
        return self._here(self._start(window, target, folder, handle, workers), workers, *hooks)

    def _here(self, hook: Coroutine[Any, Any, Any], workers: Workers, *hooks: str) -> Any:
        """Run *hook* on a resting engine for as long as *hooks* may take: core cannot cut it."""
        if self._engine is None or not self._engine.is_resting:
            return hook
        limits = workers.given.get("config", {}).get("limits", {})
        usual = {name: limits.get(f"{name}_timeout_s", _USUAL[name]) for name in hooks}
        return self._engine.drive(hook, sum(usual.values()), begins="start" in hooks)

    async def _start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> EngineRecording:
        engine, options = self._engine, self.options
        if engine is None:
            raise CaptureError("sglang: was not configured")
        if self._lost:
            raise CaptureError(
                f"sglang: the state of an earlier session is unknown ({self._lost}), so its "
                "schedulers are left alone; attach the engine again once it is healthy"
            )
        if engine.is_late:
            raise CaptureError(
                "sglang: the engine has not answered an earlier call, and is left alone until it "
                "does"
            )
        if self._native is not None or self._answers:
            raise CaptureError("sglang: a window is open already")
        if not self._way:
            await self._arrive(engine, workers)
        said = EngineRecording(applied={"way": self._way})
        said.unsupported |= unasked(options, engine, workers.tools)
        if engine.facts.has_layout:
            said.unsupported |= other_number(engine.facts.workers, workers, "schedulers")
        if self._way == "worker":
            await self._begin_inside(engine, window, workers, said)
        else:
            run_id = json.loads((folder.parent / "capture.json").read_text())["run_id"]
            most_s = longest_s(workers.given.get("config", {}))
            native = Native(engine, options, workers.tools.get("torch", {}), most_s)
            await self._begin_native(engine, native, window, target, run_id)
            if native.state == "idle":  # answered after our stop, and ended again
                self._lost = ""
                return said
            said.applied |= native.applied
            said.unsupported |= native.unsupported | beyond_native(workers, "schedulers", NATIVE)
        if options.requests:
            is_served = self._way == "worker" and engine.facts.kind == "http"
            here = partial(Requests, handle, has_metrics=engine.facts.has_metrics)
            self._requests = Served(self._frontend) if is_served else here()
            said.unsupported |= self._requests.unsupported
            await engine.run(self._requests.start)
        return said

    async def _begin_inside(
        self, engine: Engine, window: Window, workers: Workers, said: EngineRecording
    ) -> None:
        answers = self._answers = {"began": []}  # the end is sent in any case
        answers["began"] = await self._tell(engine, workers.begin(window))
        recording = answers_in(answers["began"], "recording", _NOBODY)
        said.applied["workers"] = [one["worker"] for one in recording]
        if self.options.iterations is not None:
            said.applied["iterations"] = attrs.asdict(self.options.iterations)

    async def _begin_native(
        self, engine: Engine, native: Native, window: Window, target: Target, run_id: str
    ) -> None:
        if engine.facts.is_inside:
            await engine.look()
            if engine.facts.is_overdue:  # of a run that has died
                await engine.stop()
                await engine.look()
            if engine.facts.is_profiling:
                raise CaptureError("sglang: somebody else is profiling this engine")
        self._native = native
        below = profiler_dir("sglang", self.options.profiler_dir, target)
        await native.start(window, target, below, run_id)

    @hookimpl
    def stop(self, window: Window, folder: Path, workers: Workers) -> Any:
        """End the recording, and write the notes that its export needs."""
        return self._here(self._stop(window, folder, workers), workers, "stop")

    async def _stop(self, window: Window, folder: Path, workers: Workers) -> None:
        engine = self._engine
        native, self._native = self._native, None
        requests, self._requests = self._requests, None
        answers, self._answers = self._answers, {}
        if engine is None or (native is None and not answers):
            return
        if native is not None:
            self._lost = "its stop was not answered"  # it may be, after core gave up on us
        self._leave_notes(engine, folder, native, answers)
        try:
            if native is not None:
                await self._end_native(native, folder)
            else:
                answers["ended"] = await self._tell(engine, workers.end(window))
                if isinstance(requests, Served):
                    requests.answers = self._frontend
        finally:
            self._leave_notes(engine, folder, native, answers)
            if requests is not None:
                requests.stop(folder, engine.loop)

    async def _end_native(self, native: Native, folder: Path) -> None:
        try:
            await native.stop(folder)
        except CaptureError as exc:
            self._lost = str(exc) if native.state == "unknown" else ""
            raise
        self._lost = "its start was not answered" if native.state == "unknown" else ""

    def _leave_notes(
        self, engine: Engine, folder: Path, native: Native | None, answers: Mapping[str, Any]
    ) -> None:
        notes = {
            "way": self._way,
            "facts": {**attrs.asdict(engine.facts), "workers": engine.facts.workers},
            "answers": answers,
            **({} if native is None else native.notes),
            "lost": self._lost,
            "merged": self.options.native_merge,
            "by_stage": self.options.by_stage,
        }
        with suppress(OSError):
            (folder / NOTES).write_text(json.dumps(notes, default=str))

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Make traces of SGLang's files and requests, and a summary of the answers."""
        return exported(capture, folder, out)

    async def _tell(self, engine: Engine, order: str) -> list[dict[str, Any]]:
        """Send an order to the schedulers; return the answer of the first one in each replica."""
        chosen = self.options.iterations
        iterations = {} if chosen is None else attrs.asdict(chosen)
        is_served = self.options.requests and engine.facts.kind == "http"
        try:
            found = await told(engine, order, {"iterations": iterations, "requests": is_served})
        except CaptureError:
            raise
        except Exception as exc:
            raise CaptureError(
                f"sglang: its schedulers cannot be reached: {type(exc).__name__}: {exc}"[:500]
            ) from exc
        answers, self._frontend = parted(found)
        return answers


def _ready(engine: Engine) -> Ready:
    """Have core call a resting Engine on its user's thread, and never wait on the engine's loop.

    If an event loop runs on that thread, it must not wait, so another thread calls the Engine.
    """
    return Ready(
        lambda: "thread" if engine.is_resting and loop_here() is None else "process",
        lambda: engine.loop,
    )
