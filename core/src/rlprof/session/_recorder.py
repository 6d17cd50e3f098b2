"""One plugin that records one target: configured, started and stopped per window, guarded."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import PluginError
from rlprof.plugins import hooks
from rlprof.session._answers import ON_ITS_LOOP, ready_of, said_by
from rlprof.session._boundary import Guard
from rlprof.session._calls import Caller
from rlprof.session._exports import Job
from rlprof.session._instance import Instance
from rlprof.session._pressure import Pressure
from rlprof.session.export_process import RAW
from rlprof.session.interpreter import unrecorded_by
from rlprof.types import Capture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.config import ToolUse
    from rlprof.session._link import Link
    from rlprof.session._means import Means
    from rlprof.types import Target, Window


class Recorder:
    """Drives one plugin for one target."""

    def __init__(self, name: str, target: Target, means: Means, *, link: Link | None) -> None:
        self.name = name
        self.bytes = 0
        """What the artifacts of all its windows took."""
        self.pressure = Pressure()
        self._target = target
        self._target_data = attrs.asdict(target)
        self._folder = target.folder
        self._scratch = means.scratch if link is None else means.scratch / self._folder
        self._means = means
        self._link = link
        self._request = ""
        self._caller = Caller(name, means.limits, means.boundary)
        self._instances: list[Instance] = []
        self._job: Job | None = None
        self._latest: Job | None = None
        """The job of the window that was opened last, also while it is being stopped."""
        self._recording: Any = None
        self._started = False
        self._misses: dict[str, int] = {}
        """How often a method of the recording has failed in this window."""

    @property
    def use(self) -> ToolUse:
        """The plugin with the options it goes on with."""
        return self._now.use

    def lighter(self, options: Any) -> Any:
        """Return *options* one notch cheaper, or None where nothing is cheaper."""
        ask = partial(self._now.hooks.lighter, options=options)
        return self._means.boundary.call(f"{self.name}.lighter", ask, lambda _: None)

    def has(self, use: ToolUse) -> bool:
        """Whether it knows the options of *use*."""
        return any(known.use.asks_as(use) for known in self._instances)

    def take(self, use: ToolUse) -> None:
        """Go on with the options of *use*; new ones need a new instance, which is configured."""
        for known in self._instances:
            if known.use is use or known.use.asks_as(use):
                self._now = known
                return
        unrecorded_by(use.plugin)
        plugin = use.plugin()
        found = hooks(plugin, self._means.plugins)
        self._now = Instance(use, plugin, found, self._link)
        self._instances.append(self._now)
        self._configure(self._now)

    def _configure(self, instance: Instance) -> None:
        """Let the plugin import and warm up; one that cannot is not used with these options."""
        hook = partial(
            instance.hooks.configure,
            place="process",
            target=self._target,
            options=instance.use.options,
            **self._given(instance.use),
        )

        def refuse(reason: str) -> None:
            instance.refused = reason
            self._means.scribe.tell("configured", **self._key, error=reason)

        anywhere = getattr(instance.use.plugin, "runs_on", "") == "process"
        call = self._caller.away if anywhere or self._link is not None else self._caller.here
        scribe, key = self._means.scribe, self._key
        scribe.tell("configuring", **key)
        scribe.flush()  # should it never return, the manifest says which it was
        with Guard(self._means.boundary, f"{self.name}.configure", refuse):
            answer, _ = call("configure", self._settling(hook))
            any_thread = self._means.any_thread
            instance.ready = ready_of(
                answer, instance.plugin, instance.usual, any_thread=any_thread
            )
        if not instance.refused:
            scribe.tell("configured", **key, error="")

    @property
    def needs_its_thread(self) -> bool:
        """Whether the plugin must be stopped on the thread it was started on."""
        # Without an instance, another thread is just making it ready.
        return bool(self._instances) and self._now.needs_its_thread

    @property
    def needs_this_loop(self) -> bool:
        """Whether the engine needs the event loop that runs on the calling thread."""
        return bool(self._instances) and self._now.needs_this_loop

    def capture(self, window: Window) -> Capture:
        """Describe the capture of *window* to whoever exports it."""
        plugin = type(self._now.plugin)
        return Capture(
            run_id=self._means.run.run_id,
            target=self._target,
            window=window,
            tool=self.name,
            host=self._means.here.host,
            pid=self._means.here.pid,
            options=dict(self._now.use.asked),
            plugin=f"{plugin.__module__}:{plugin.__qualname__}",
            kind="tool" if self._link is None else "engine",
        )

    def prepare(self, window: Window, data: Mapping[str, Any], place: str, **said: Any) -> None:
        """Make the capture's folder and leave the line that says it is about to be opened.

        *data* and *place* are the window as plain data, and its folder.
        """
        key, run = {"window": data, **self._key}, self._means.run.path
        folder = self._scratch.joinpath(place, self.name)
        out = run.joinpath(place, self._folder, self.name)
        self._request = said.get("request", "")
        made = type(self._now.plugin)  # no other process can import such a class
        own = made.__module__ == "__main__" or "<locals>" in made.__qualname__
        job = Job(key, folder, out, run, in_process=own, measured=self._measured)
        self._job = self._latest = job
        self._misses = {}
        asked = dict(self._now.use.asked)
        self._means.scribe.tell("opened", **key, scratch=str(folder), asked=asked, **said)
        with self._guard("prepare"):
            capture = attrs.asdict(self.capture(window), recurse=False)
            _make_folder(str(folder), {**capture, "target": self._target_data, "window": data})
            return
        self._drop()  # rather no recording than one that nobody can export

    def start(self, window: Window) -> None:
        """Start the plugin; what it refuses or breaks is recorded."""
        job = self._job
        if job is None:
            return
        self._started = False
        here, why = self.needs_its_thread, self._caller.broken or self._now.refused
        if not why and self.needs_this_loop and not here:
            why = ON_ITS_LOOP
            self._means.boundary.tell(f"{self.name}.start", why)
        if why:
            self._failed("start", f"not started: {why}")
            self._drop()
            return
        hook = self._hook("start", window, job, target=self._target)
        with self._guard("start"):
            if here:
                recording, seconds = self._caller.here("start", hook)
            else:
                stop = self._hook("stop", window, job)
                recording, seconds = self._caller.away("start", hook, stop)
            self._on_start(recording, seconds)

    def stop(self, window: Window, reason: str, late: str = "") -> None:
        """Stop the plugin, started or not, and hand what it recorded on to be exported."""
        job, self._job, self._recording = self._job, None, None
        if job is None:
            return
        scribe = self._means.scribe
        scribe.clock()
        hook = self._hook("stop", window, job)
        export = partial(scribe.exports.submit, job)
        seconds = None
        try:
            if self._caller.unanswered != "start":  # a stop follows that one
                with self._guard("stop", job):
                    seconds = self._stop(hook, export)
                self.pressure.last_stop_s = seconds or 0.0
        finally:  # strict passes on what stop raised, and loses nothing
            for method, count in self._misses.items():
                if count > 1:
                    error = f"failed {count} times in this window"
                    scribe.tell("failed", **job.key, hook=method, error=error)
            said = {"late": late} if late else {}
            scribe.tell("closed", **job.key, reason=reason, seconds=seconds, **said)
            if not self._started:
                scribe.discard(job.folder)
            elif self._caller.unanswered != "stop":  # the export follows that one
                export()

    def _stop(self, hook: Callable[[], Any], export: Callable[[], Any]) -> float:
        if self.needs_its_thread:
            return self._caller.here("stop", hook)[1]
        blocks = self.needs_this_loop
        return self._caller.away("stop", hook, export, needs_this_loop=blocks)[1]

    def push(self, name: str, payload: Mapping[str, Any]) -> None:
        """Open a range in the recording."""
        self._ask("push", name, payload)

    def pop(self) -> None:
        """Close the range opened last."""
        self._ask("pop")

    def minibatch(self) -> None:
        """Tell the recording of the next mini-batch."""
        self._ask("minibatch")

    def end(self) -> None:
        """Let the plugin's thread end."""
        self._caller.end()

    def watch(self) -> None:
        """Say it, from another thread, if a hook on the working thread does not return."""
        found = self._caller.hangs()
        if found is not None:
            hook, seconds = found
            error = f"has not returned for {seconds:.0f} s; it runs on the working thread, so "
            error += "nobody can cut it"
            self._failed(hook, error, None if hook == "configure" else self._latest)
            self._means.boundary.tell(f"{self.name}.{hook} hangs", error)

    def _given(self, use: ToolUse) -> dict[str, Any]:
        """Return the arguments that only an engine's hooks get."""
        return {} if self._link is None else self._link.given(use, self._request)

    @property
    def _key(self) -> dict[str, Any]:
        """What lines about this target and plugin say."""
        key: dict[str, Any] = {"tool": self.name}
        return key if self._link is None else {**key, "target": self._target_data}

    def _measured(self, size: int) -> None:
        self.pressure.last_bytes = size
        self.bytes += size

    def _ask(self, method: str, *args: Any) -> None:
        call = getattr(self._recording, method, None)
        if call is not None:
            with self._guard(method):
                self._caller.here(method, partial(call, *args))

    def _on_start(self, recording: Any, seconds: float) -> None:
        self._started = True
        said, odd = said_by(recording)
        self._recording = None if odd else recording
        for option, reason in said["unsupported"].items():
            self._means.boundary.tell(f"{self.name}: {option}", reason)
        if self._job is not None:
            self._means.scribe.tell("started", **self._job.key, seconds=seconds, **said)
        if odd:
            raise PluginError(odd)

    def _hook(self, verb: str, window: Window, job: Job, **given: Any) -> Callable[[], Any]:
        """Return what calls a hook of the plugin, and waits where it is asynchronous."""
        given |= {"window": window, "folder": job.folder / RAW, **self._given(self._now.use)}
        return self._settling(self._now.hooks.bound(verb, **given))

    def _settling(self, hook: Callable[[], Any]) -> Callable[[], Any]:
        return hook if self._link is None else partial(self._link.settled, hook)

    def _guard(self, hook: str, job: Job | None = None) -> Guard:
        failed = partial(self._failed, hook, job=job or self._job)
        return Guard(self._means.boundary, f"{self.name}.{hook}", failed)

    def _drop(self) -> None:
        """Record nothing in this window."""
        if self._job is not None:
            self._means.scribe.discard(self._job.folder)
            self._job = None

    def _failed(self, hook: str, error: str, job: Job | None = None) -> None:
        job = job or self._job
        if job is None:  # configure: no window is open
            self._means.scribe.tell("configured", **self._key, error=error)
            return
        if hook in ("push", "pop", "minibatch"):
            self._misses[hook] = self._misses.get(hook, 0) + 1
            if self._misses[hook] > 1:
                return
        if hook == "stop" and self._caller.unanswered == "stop":
            error += f"; raw data are kept in {job.folder}"
        self._means.scribe.tell("failed", **job.key, hook=hook, error=error)


def _make_folder(folder: str, capture: Mapping[str, Any]) -> None:
    raw = f"{folder}/{RAW}"
    try:
        os.mkdir(folder)  # noqa: PTH102 -- on the way into a step
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    os.makedirs(raw, exist_ok=True)  # noqa: PTH103
    with open(f"{folder}/capture.json", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(json.dumps(capture, default=str))
