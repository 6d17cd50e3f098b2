"""The engine `vllm`: two ways to record a replica, chosen by what the engine can do.

If rlprof's code is in the workers, our own tools record there: any tool, any rank, each window in
its own folder, results per rank. Otherwise vLLM's own profiler records.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError, Ready, hookimpl
from rlprof_engine.answers import choose
from rlprof_engine.launching import faults_of, profiler_dir
from rlprof_engine.replica import Replica
from rlprof_vllm._counters import asked, kept
from rlprof_vllm._engine import reach
from rlprof_vllm._export import NOTES, exported
from rlprof_vllm._installed import advise, has_known_profiler, sources_here, version
from rlprof_vllm._launch import engine_launch
from rlprof_vllm._native import Native
from rlprof_vllm._options import VllmOptions
from rlprof_vllm._requests import Requests

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from pathlib import Path

    from rlprof import Artifact, Capture, Launch, Target, Window, Workers
    from rlprof.types import Place
    from rlprof_engine.answers import EngineRecording
    from rlprof_vllm._server import Engine


@attrs.define(eq=False)  # identity: plugins are compared
class Vllm(Replica):
    """Record vLLM rollout replicas, natively or in the workers."""

    Options = VllmOptions
    name = "vllm"
    process = "worker"
    profiler = "vLLM's own profiler"
    notes = NOTES

    advise = staticmethod(hookimpl(advise))
    _kept = staticmethod(kept)
    _asked = staticmethod(asked)

    options: VllmOptions = attrs.field(factory=VllmOptions)
    _engine: Engine | None = None
    _caller: int = 0
    """The thread that called the last hook."""

    @hookimpl
    def configure(
        self, place: Place, target: Target, options: VllmOptions, handle: Any, workers: Workers
    ) -> Launch | Coroutine[Any, Any, Ready]:
        """At launch, return what to launch the engine with; later, choose how to record it."""
        if place == "launch":
            faults = list(faults_of(options.way, "", self.profiler, workers.tools))
            if faults:
                raise CaptureError("; ".join(faults))
            return engine_launch(options, target, workers.tools)
        self.options, self._caller = options, threading.get_ident()
        return self._arrive(target, handle, workers)

    async def _arrive(self, target: Target, handle: Any, workers: Workers) -> Ready:
        """Choose the way, and let the workers warm up."""
        wanted = profiler_dir("vllm", self.options.profiler_dir, target)
        engine = self._engine = reach(handle, str(wanted))
        await engine.look()
        is_early = self._is_too_early(engine)
        if not is_early and self.options.way != "native":
            await engine.look_inside()
        self._way = _way(self.options, engine, workers.tools)
        if self._way == "worker" and not is_early:
            await self._prepare(workers)
        # An engine in this process works on the calling thread. The loop of any engine must not
        # wait for work that it does itself.
        return Ready(lambda: "thread" if engine.facts.is_here else "process", lambda: engine.loop)

    def _here(self, _: str, hook: Coroutine[Any, Any, Any], __: Workers) -> Any:
        self._caller = threading.get_ident()
        return hook

    def _is_too_early(self, engine: Engine) -> bool:
        """Whether a call would bind the engine, for good, to a loop that ends with the call.

        On the thread that called the hook, the loop is the hook's own. The loop given to `attach`
        runs on another thread.
        """
        return engine.is_unborn and threading.get_ident() == self._caller

    async def _start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> EngineRecording:
        engine: Engine = self._idle()
        if self._is_too_early(engine):
            raise CaptureError(
                "vllm: the engine has no event loop yet, because it was made outside of one and "
                "nothing has called it; make it in a coroutine, or attach it with loop="
            )
        await self._check_awake(engine)
        return await super()._start(window, target, folder, handle, workers)

    async def _check_awake(self, engine: Engine) -> None:
        """Refuse an engine that is dead, asleep or paused."""
        if engine.is_errored:
            raise CaptureError("vllm: the engine is dead")
        # Some versions report a paused engine as asleep, so check first whether it is paused.
        for method, word in (("is_paused", "paused"), ("is_sleeping", "asleep")):
            if method in engine.facts.methods:
                with self._failing(method):
                    found = await engine.call(method)
                if found is True:
                    raise CaptureError(
                        f"vllm: the engine is {word}; a window records a phase of generation"
                    )

    async def _begin_native(
        self, engine: Engine, window: Window, _: Target, run_id: str, workers: Workers
    ) -> Native:
        contents: Sequence[str] = workers.tools.get("torch", {}).get("contents", ())
        _check_hosting(engine)
        native = self._native = Native(engine, self.options, contents)
        await native.start(window, run_id)
        return native

    def _requests_of(self, _: Engine, handle: Any) -> Requests:
        return Requests(handle)

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Make traces of vLLM's files and requests, and a summary of the answers."""
        return exported(capture, folder, out)


def _way(options: VllmOptions, engine: Engine, tools: Mapping[str, Any]) -> str:
    """Choose the way; raise CaptureError if neither is possible."""
    facts = engine.facts
    inside = ""
    if facts.kind == "http" and "collective_rpc" not in facts.methods:
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
    return choose("vllm", options.way, tools, ("workers", inside), (Vllm.profiler, native))


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
