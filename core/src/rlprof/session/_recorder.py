"""One plugin that records one target: configured, started and stopped per window, guarded."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.answers import ON_ITS_LOOP, Ready, check_ready, options_of, ready_of, runs_on_of
from rlprof.errors import PluginError
from rlprof.plugins import hooks
from rlprof.rundir import scratch_name
from rlprof.session._boundary import Guard
from rlprof.session._calls import Caller
from rlprof.session._job import RAW, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.config import ToolUse
    from rlprof.plugins import Hooks
    from rlprof.session._context import Context
    from rlprof.session._loops import Link
    from rlprof.types import RunsOn, Target, Window

_RANGES = ("push", "pop", "minibatch")
_SLOW = 0.5
"""Share of `stop_timeout_s`: a stop that took more may soon exceed the limit."""


@attrs.define
class Instance:
    """A plugin with one set of options; `configure` is called once on it."""

    use: ToolUse
    hooks: Hooks
    ready: Ready
    """Where it runs: as its class declares, then as `configure` returned."""
    refused: str = ""
    """Why it cannot be used with these options."""


class Recorder:
    """Drives one plugin for one target."""

    def __init__(self, name: str, target: Target, context: Context, link: Link | None) -> None:
        self.name = name
        self.now: Instance
        """The plugin with its current options."""
        self.spent = 0
        """The bytes of its artifacts so far."""
        self.last_bytes = 0
        """The artifacts of a window since the last one was prepared."""
        self.last_stop_s = 0.0
        """The stop of that window."""
        self._target = target
        self._target_data = attrs.asdict(target)
        self._folder = target.folder
        self._scratch = context.scratch if link is None else context.scratch / self._folder
        self._context = context
        self._link = link
        self._key = {"tool": name} if link is None else {"tool": name, "target": self._target_data}
        """The fields of manifest lines about this target and plugin."""
        self._caller = Caller(name, context.limits, context.boundary)
        self._guards = {
            hook: Guard(context.boundary, f"{name}.{hook}", partial(self._failed, hook))
            for hook in ("prepare", "start", "stop", *_RANGES)
        }
        self._instances: list[Instance] = []
        self._job: Job | None = None
        """The capture of the window that is open, also while it is being stopped."""
        self._given: dict[str, Any] = {}
        """The arguments for the hooks of that window."""
        self._recording: Any = None
        self._started = False
        self._missed: set[str] = set()
        """The methods of the recording that failed in this window."""
        self._too_much: list[str] = []
        """Why windows should be lighter; each reason is a notch."""

    def lightened(self, use: ToolUse, left: int) -> str:
        """Record less than *use* if the last window was too much for *left* bytes; say why."""
        size, stop_s = self.last_bytes, self.last_stop_s
        self.last_bytes, self.last_stop_s = 0, 0.0  # each window is judged once
        if size > left:
            share = f"{left:,} of its share of limits.bytes are left"
            self._too_much.append(f"the last window took {size:,} bytes and {share}")
        elif stop_s > _SLOW * self._context.limits.stop_timeout_s:
            self._too_much.append(f"the last stop took {stop_s:.1f} s of limits.stop_timeout_s")
        if not self._too_much:
            return ""
        options, old = use.options, attrs.asdict(use.options)
        for _ in self._too_much:  # each reason is a notch
            less = partial(self.now.hooks.lighter, options=options)
            options = self._context.boundary.call(f"{self.name}.lighter", less) or options
        changed = {key: new for key, new in attrs.asdict(options).items() if new != old[key]}
        if not changed:
            return ""
        self.take(attrs.evolve(use, options=options, asked={**use.asked, **changed}))
        return f"{', '.join(f'{key}: {new}' for key, new in changed.items())}; {self._too_much[-1]}"

    def known(self, use: ToolUse) -> Instance | None:
        """Return the configured instance with the options of *use*, if there is one."""
        return next((one for one in self._instances if one.use.asks_as(use)), None)

    def take(self, use: ToolUse) -> None:
        """Continue with the options of *use*; new options need a new, configured instance."""
        known = self.known(use)
        if known is not None:
            self.now = known
            return
        if hasattr(use.plugin, "leave_alone"):
            from rlprof.session.interpreter import unrecorded_by

            unrecorded_by(use.plugin)
        plugin = use.plugin()
        usual: RunsOn = "thread" if self._link is None else "process"
        ready = Ready(getattr(plugin, "runs_on", usual))
        self.now = Instance(use, hooks(plugin, self._context.plugins), ready)
        self._instances.append(self.now)
        self._configure(self.now)

    def _configure(self, instance: Instance) -> None:
        """Let the plugin import and warm up; if it fails, it is not used with these options."""
        use, scribe = instance.use, self._context.scribe
        given = {"place": "process", "target": self._target, "options": use.options}
        if self._link is not None:
            given |= self._link.given(use)

        def refuse(reason: str) -> None:
            instance.refused = f"configure: {reason}"
            self._failed("configure", reason)

        here = self._link is None and instance.ready.runs_on != "process"
        scribe.record("configuring", **self._key)
        scribe.flush()  # should it never return, the manifest says which it was
        with Guard(self._context.boundary, f"{self.name}.configure", refuse):
            answer, _ = self._caller.call("configure", self._hook("configure", given), here=here)
            ready = ready_of(answer, instance.ready)
            check_ready(ready, any_thread=self._context.any_thread)
            instance.ready = ready
        if not instance.refused:
            scribe.record("configured", **self._key, error="")

    @property
    def needs_its_thread(self) -> bool:
        """Whether the plugin must be stopped on the thread it was started on."""
        if not self._instances:  # another thread is just making it ready
            return False
        return bool(runs_on_of(self.now.ready) == "thread")

    @property
    def needs_this_loop(self) -> bool:
        """Whether the engine needs the event loop that runs on the calling thread."""
        if self._link is None or not self._instances:
            return False
        loop = self.now.ready.loop
        with suppress(Exception):  # a hook of a plugin may raise, and windows must close
            loop = loop() if callable(loop) else loop
        return self._link.is_on_its_loop(loop)

    def prepare(self, window: Window, data: Mapping[str, Any], place: str, **noted: Any) -> None:
        """Make the folder of the capture and write the line that announces it.

        *data* and *place* are the window as plain data, and its folder.
        """
        run, here, use = self._context.run, self._context.here, self.now.use
        made, asked, key = use.plugin, dict(use.asked), {"window": data, **self._key}
        folder = self._scratch / scratch_name(place, self.name)
        out = run.path.joinpath(place, self._folder, self.name)
        self._given = {"target": self._target, "window": window, "folder": folder / RAW}
        if self._link is not None:
            self._given |= self._link.given(use, noted.get("request", ""))
        # no other process can import such a class
        own = made.__module__ == "__main__" or "<locals>" in made.__qualname__
        self._job = Job(key, folder, out, run.path, in_process=own, measured=self._measured)
        self._missed = set()
        self._context.scribe.record("opened", **key, scratch=str(folder), asked=asked, **noted)
        capture = {
            "run_id": run.run_id, "target": self._target_data, "window": data, "tool": self.name,
            "host": here.host, "pid": here.pid, "options": asked,
            "plugin": f"{made.__module__}:{made.__qualname__}",
            "kind": "tool" if self._link is None else "engine",
        }  # fmt: skip
        with self._guards["prepare"]:
            os.makedirs(f"{folder}/{RAW}", exist_ok=True)  # noqa: PTH103 -- on the way into a step
            with open(f"{folder}/capture.json", "wb", buffering=0) as file:  # noqa: PTH123
                file.write(json.dumps(capture, default=str).encode())
            return
        self._drop()  # no recording is better than one that cannot be exported

    def start(self) -> None:
        """Start the plugin; note refusals and failures in the manifest."""
        if self._job is None:
            return
        self._started = False
        here, why = self.needs_its_thread, self._caller.broken or self.now.refused
        if not why and not here and self._link is not None and self.needs_this_loop:
            why = ON_ITS_LOOP
            self._context.boundary.warn(f"{self.name}.start", why)
        if why:
            self._failed("start", f"not started: {why}")
            self._drop()
            return
        with self._guards["start"]:
            hook = self._hook("start", self._given)
            stop = None if here else self._hook("stop", self._given)
            recording, seconds = self._caller.call("start", hook, here=here, afterwards=stop)
            self._started = True
            options, odd = options_of(recording)
            self._recording = None if odd else recording
            for option, reason in options["unsupported"].items():
                self._context.boundary.warn(f"{self.name}: {option}", reason)
            self._context.scribe.record("started", **self._job.key, seconds=seconds, **options)
            if odd:
                raise PluginError(odd)

    def stop(self, reason: str, late: str = "") -> None:
        """Stop the plugin, started or not, and queue its recording for export."""
        job, self._recording = self._job, None
        if job is None:
            return
        scribe, seconds = self._context.scribe, None
        scribe.clock()
        export = partial(scribe.export, job)
        try:
            if self._caller.unanswered != "start":  # a stop follows it
                with self._guards["stop"]:
                    here, hook = self.needs_its_thread, self._hook("stop", self._given)
                    blocks = not here and self.needs_this_loop
                    _, seconds = self._caller.call(
                        "stop", hook, here=here, afterwards=export, blocks=blocks
                    )
                self.last_stop_s = seconds or 0.0
        finally:  # strict mode passes on exceptions of stop, and loses nothing
            self._job = None
            given_up = {"late": late} if late else {}
            scribe.record("closed", **job.key, reason=reason, seconds=seconds, **given_up)
            if not self._started:
                scribe.discard(job.folder)
            elif self._caller.unanswered != "stop":  # the export follows it
                export()

    def range(self, method: str, *args: Any) -> None:
        """Call `push`, `pop` or `minibatch` of the recording, if it has it."""
        call = getattr(self._recording, method, None)
        if call is not None:
            with self._guards[method]:
                self._caller.call(method, partial(call, *args), here=True)

    def end(self) -> None:
        """Let the plugin's thread end."""
        self._caller.end()

    def watch(self) -> None:
        """Report, from another thread, a hook that does not return to the working thread."""
        found = self._caller.hangs()
        if found is not None:
            hook, error = found
            self._failed(hook, error)
            self._context.boundary.warn(f"{self.name}.{hook} hangs", error)

    def _measured(self, size: int) -> None:
        self.last_bytes = size
        self.spent += size

    def _hook(self, verb: str, given: Mapping[str, Any]) -> Callable[[], Any]:
        """Return a function that calls a hook of the plugin, and waits if it is asynchronous."""
        hook = self.now.hooks.bound(verb, **given)
        return hook if self._link is None else partial(self._link.settled, hook)

    def _drop(self) -> None:
        """Record nothing in this window."""
        if self._job is not None:
            self._context.scribe.discard(self._job.folder)
            self._job = None

    def _failed(self, hook: str, error: str) -> None:
        job = self._job
        if hook == "configure":
            self._context.scribe.record("configured", **self._key, error=error)
        elif job is not None and hook not in self._missed:
            if hook in _RANGES:
                self._missed.add(hook)  # the first stands for those that follow
            if hook == "stop" and self._caller.unanswered == "stop":
                error += f"; raw data are kept in {job.folder}"
            self._context.scribe.record("failed", **job.key, hook=hook, error=error)
