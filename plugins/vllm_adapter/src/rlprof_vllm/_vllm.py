"""The engine `vllm`: two ways to record a replica, chosen by what the engine can do.

If rlprof's code is in the workers, our own tools record there: any tool, any rank, each window in
its own folder, results per rank. Otherwise vLLM's own profiler records.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError, Ready, hookimpl
from rlprof_engine.answers import EngineRecording, answers_in, beyond_native, choose, other_number
from rlprof_engine.counters import Counters
from rlprof_engine.frontend import Served, parted
from rlprof_engine.launching import faults_of, profiler_dir
from rlprof_vllm._counters import asked, kept
from rlprof_vllm._engine import reach
from rlprof_vllm._export import NOTES, exported
from rlprof_vllm._installed import advise, has_known_profiler, sources_here, version
from rlprof_vllm._launch import engine_launch
from rlprof_vllm._native import Native
from rlprof_vllm._options import VllmOptions
from rlprof_vllm._requests import Requests
from rlprof_vllm.inside import METHOD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from pathlib import Path

    from rlprof import Artifact, Capture, Launch, Target, Window, Workers
    from rlprof.types import Place
    from rlprof_vllm._server import Engine


_NOBODY = "vllm: no worker records"
_NATIVE = "vLLM's own profiler"


@attrs.define(eq=False)  # identity: plugins are compared
class Vllm:
    """Record vLLM rollout replicas, natively or in the workers."""

    Options = VllmOptions
    drives = True

    advise = staticmethod(hookimpl(advise))

    options: VllmOptions = attrs.field(factory=VllmOptions)
    _engine: Engine | None = None
    _way: str = ""
    _native: Native | None = None
    _requests: Requests | Served | None = None
    _frontend: list[dict[str, Any]] = attrs.field(factory=list)
    """The answers of a server's own process to the last order."""
    _answers: dict[str, Any] = attrs.field(factory=dict)
    _counters: Counters = attrs.field(factory=partial(Counters, kept, asked))

    def counters(self, handle: Any) -> Mapping[str, float]:
        """Say how many requests run and wait, the largest batch, and how full the KV cache is."""
        return self._counters.read(handle)

    @hookimpl
    def configure(
        self, place: Place, target: Target, options: VllmOptions, handle: Any, workers: Workers
    ) -> Launch | Awaitable[Ready]:
        """At launch, return what to launch the engine with; later, choose how to record it."""
        if place == "launch":
            faults = list(faults_of(options.way, "", _NATIVE, workers.tools))
            if faults:
                raise CaptureError("; ".join(faults))
            return engine_launch(options, target, workers.tools)
        self.options = options
        return self._arrive(target, handle, workers, threading.get_ident())

    async def _arrive(self, target: Target, handle: Any, workers: Workers, caller: int) -> Ready:
        """Choose the way, and let the workers warm up."""
        wanted = profiler_dir("vllm", self.options.profiler_dir, target)
        engine = self._engine = reach(handle, str(wanted))
        await engine.look()
        is_early = _is_too_early(engine, caller)
        if not is_early and self.options.way != "native":
            await engine.look_inside()
        self._way = _way(self.options, engine, workers.tools)
        if self._way == "worker" and not is_early:
            answers = await self._tell(engine, workers.prepare())
            answers_in(answers, "ready", _NOBODY)
        # An engine in this process works on the calling thread. The loop of any engine must not
        # wait for work that it does itself.
        return Ready(lambda: "thread" if engine.facts.is_here else "process", lambda: engine.loop)

    @hookimpl
    def start(
        self, window: Window, folder: Path, handle: Any, workers: Workers
    ) -> Awaitable[EngineRecording]:
        """Begin to record, by the way that was chosen."""
        return self._start(window, folder, handle, workers, threading.get_ident())

    async def _start(
        self, window: Window, folder: Path, handle: Any, workers: Workers, caller: int
    ) -> EngineRecording:
        engine, options = self._engine, self.options
        if engine is None:
            raise CaptureError("vllm: was not configured")
        if self._native is not None or self._answers:
            raise CaptureError("vllm: a window is open already")
        if _is_too_early(engine, caller):
            raise CaptureError(
                "vllm: the engine has no event loop yet, because it was made outside of one and "
                "nothing has called it; make it in a coroutine, or attach it with loop="
            )
        await _check_awake(engine)
        said = EngineRecording(applied={"way": self._way})
        if engine.facts.has_layout:
            said.unsupported |= other_number(engine.facts.workers, workers, "workers")
        if self._way == "worker":
            answers = self._answers = {"began": []}  # the end is sent in any case
            answers["began"] = await self._tell(engine, workers.begin(window))
            recording = answers_in(answers["began"], "recording", _NOBODY)
            said.applied["workers"] = [one["worker"] for one in recording]
            if options.iterations is not None:
                said.applied["iterations"] = attrs.asdict(options.iterations)
        else:
            native = Native(engine, options, _contents(workers))
            run_id = json.loads((folder.parent / "capture.json").read_text())["run_id"]
            _check_hosting(engine)
            self._native = native
            await native.start(window, run_id)
            said.applied |= native.applied
            said.unsupported |= native.unsupported | beyond_native(workers, "workers", _NATIVE)
        if options.requests:
            is_served = self._way == "worker" and engine.facts.kind == "http"
            self._requests = Served(self._frontend) if is_served else Requests(handle)
            said.unsupported |= self._requests.unsupported
            await engine.run(self._requests.start)
        return said

    @hookimpl
    def stop(self, window: Window, folder: Path, workers: Workers) -> Awaitable[None]:
        """End the recording, and write the notes that its export needs."""
        return self._stop(window, folder, workers)

    async def _stop(self, window: Window, folder: Path, workers: Workers) -> None:
        engine = self._engine
        native, self._native = self._native, None
        requests, self._requests = self._requests, None
        answers, self._answers = self._answers, {}
        if engine is None or (native is None and not answers):
            return
        try:
            if native is not None:
                await native.stop(folder)
            else:
                answers["ended"] = await self._tell(engine, workers.end(window))
                if isinstance(requests, Served):
                    requests.answers = self._frontend
        finally:
            notes = {"way": self._way, "facts": attrs.asdict(engine.facts), "answers": answers}
            with suppress(OSError):
                (folder / NOTES).write_text(json.dumps(notes, default=str))
            if requests is not None:
                requests.stop(folder, engine.loop)

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Make traces of vLLM's files and requests, and a summary of the answers."""
        return exported(capture, folder, out)

    async def _tell(self, engine: Engine, order: str) -> list[dict[str, Any]]:
        """Send an order to the workers; return the answers of all, or of the first replica's."""
        chosen = self.options.iterations
        said = {
            "order": order,
            "iterations": {} if chosen is None else attrs.asdict(chosen),
            "requests": self.options.requests and engine.facts.kind == "http",
        }
        try:
            found = await engine.call("collective_rpc", METHOD, args=(json.dumps(said),))
        except Exception as exc:
            raise _failed(engine, "its workers cannot be reached", exc) from exc
        answers, self._frontend = parted([json.loads(answer) for answer in found or ()])
        return answers


def _is_too_early(engine: Engine, caller: int) -> bool:
    """Whether a call would bind the engine, for good, to a loop that ends with the call.

    On the thread that called the hook, the loop is the hook's own. The loop given to `attach` runs
    on another thread.
    """
    return engine.is_unborn and threading.get_ident() == caller


def _way(options: VllmOptions, engine: Engine, tools: Mapping[str, Any]) -> str:
    """Choose the way; raise CaptureError if neither is possible."""
    facts = engine.facts
    inside = ""
    if not tools:
        inside = "the config names no tool for them"
    elif not facts.can_tell_workers and facts.kind == "http" and not facts.reaches_workers:
        inside = "this server's workers cannot be reached: start it with VLLM_SERVER_DEV_MODE=1"
    elif not facts.can_tell_workers:
        inside = (
            "rlprof-vllm is not in them: install it there before they start, and let VLLM_PLUGINS "
            "admit rlprof (set it in the shell: workers import a script again that sets it at its "
            "top)"
        )
    native = ""
    if facts.profiler == "":
        native = "it is off; launch the engine with the arguments that rlprof.launch gives"
        sources = sources_here()
        if sources is not None and not has_known_profiler(sources):
            native = f"vLLM {version(sources)} has it in a place unknown to rlprof-vllm"
    elif "start_profile" not in facts.methods:
        native = f"{facts.kind} has no start_profile"
    elif tools and "torch" not in tools:
        native = f"it records torch only, and cannot replace {', '.join(tools)}"
    return choose("vllm", options.way, ("workers", inside), (_NATIVE, native))


def _failed(engine: Engine, what: str, exc: Exception) -> CaptureError:
    """Say why a call failed: the engine may have died since the window began to open."""
    if engine.is_errored:
        return CaptureError("vllm: the engine is dead")
    return CaptureError(f"vllm: {what}: {type(exc).__name__}: {exc}"[:500])


async def _check_awake(engine: Engine) -> None:
    """Refuse an engine that is dead, asleep or paused."""
    if engine.is_errored:
        raise CaptureError("vllm: the engine is dead")
    # Some versions report a paused engine as asleep, so check first whether it is paused.
    for method, word in (("is_paused", "paused"), ("is_sleeping", "asleep")):
        if method in engine.facts.methods:
            try:
                found = await engine.call(method)
            except CaptureError:
                raise
            except Exception as exc:
                raise _failed(engine, method, exc) from exc
            if found is True:
                raise CaptureError(
                    f"vllm: the engine is {word}; a window records a phase of generation"
                )


def _check_hosting(engine: Engine) -> None:
    """Refuse if vLLM's profiler would run in this process with another one: that crashes both."""
    import sys

    facts = engine.facts
    torch = sys.modules.get("torch")
    if torch is None or not (facts.is_here or facts.records_frontend):
        return
    if torch.autograd.profiler._is_profiler_enabled:  # noqa: SLF001 -- nothing public says it
        raise CaptureError(
            "vllm: another torch profiler is active in this process; vLLM's own would also run "
            "here, and both would crash; launch with ignore_frontend, or record the workers"
        )


def _contents(workers: Workers) -> Sequence[str]:
    """Return what the config asks the tool torch to record."""
    found: Sequence[str] = workers.tools.get("torch", {}).get("contents", ())
    return found
