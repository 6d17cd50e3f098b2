"""One tool in this process: configured once, started and stopped per window, guarded throughout.

A tool that runs on the `thread` it records is called right here; its time can be measured, not
cut. A tool that may be called from anywhere in the `process` has a thread of its own to be called
on, and a step stops waiting for it when its time is over.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.errors import CaptureError
from rlprof.session._exports import Job
from rlprof.session._worker import Overrun, Worker
from rlprof.session.export_process import RAW
from rlprof.types import Capture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rlprof.config import Limits, ToolUse
    from rlprof.rundir import Here
    from rlprof.session._boundary import Boundary
    from rlprof.session._scribe import Scribe
    from rlprof.types import Target, Window


class Recorder:
    """Drives one tool for one target."""

    def __init__(
        self, use: ToolUse, target: Target, *, boundary: Boundary, scribe: Scribe, limits: Limits
    ) -> None:
        self.name = use.name
        self.broken = ""
        """Why the tool is not used any more."""
        self._use = use
        self._target = target
        self._boundary = boundary
        self._scribe = scribe
        self._limits = limits
        self._instance: Any = use.plugin()
        self._hooks = plugins.hooks("tool", self._instance)
        self._worker: Worker | None = None
        self._job: Job | None = None
        self._recording: Any = None
        self._started = False
        self._unanswered = ""
        """The hook that was given up and is in doubt: `start` or `stop`."""

    def configure(self) -> None:
        """Let the tool import and warm up; one that cannot is not used."""
        self._boundary.call(
            f"{self.name}.configure",
            partial(
                self._hooks.configure,
                place="process", target=self._target, options=self._use.options,
            ),
            self._break,
        )  # fmt: skip

    @property
    def needs_its_thread(self) -> bool:
        """Whether the tool must be stopped on the thread it was started on."""
        return getattr(self._instance, "runs_on", "thread") == "thread"

    def capture(self, window: Window, run_id: str, here: Here) -> Capture:
        """Describe the capture of *window* to whoever exports it."""
        plugin = type(self._instance)
        return Capture(
            run_id=run_id,
            target=self._target,
            window=window,
            tool=self.name,
            host=here.host,
            pid=here.pid,
            options=dict(self._use.asked),
            plugin=f"{plugin.__module__}:{plugin.__qualname__}",
        )

    def prepare(self, capture: Capture, scratch: Path, out: Path, root: Path) -> None:
        """Make the capture's folder and leave the line that says it is about to be opened."""
        window = capture.window
        key = {"window": attrs.asdict(window), "tool": self.name}
        folder = scratch / window.folder / self.name
        own = type(self._instance).__module__ == "__main__"
        self._job = Job(key, folder, out / self.name, root, in_process=own)
        self._scribe.tell("opened", **key, scratch=str(folder), asked=dict(self._use.asked))
        self._attempt("prepare", partial(_make_folder, folder, capture))

    def start(self, window: Window) -> None:
        """Start the tool; what it refuses or breaks is recorded."""
        if self._job is None:
            return
        if self.broken:
            self._failed("start", f"not started: {self.broken}")
            self._scribe.discard(self._job.folder)
            self._job = None
            return
        self._started = False
        if not self.needs_its_thread and self._worker is None:
            self._worker = Worker(f"rlprof-{self.name}")
        folder = self._job.folder / RAW
        hook = partial(self._hooks.start, window=window, target=self._target, folder=folder)
        tidy = partial(self._hooks.stop, window=window, folder=folder)
        self._attempt("start", lambda: self._on_start(*self._timed("start", hook, tidy)))

    def stop(self, window: Window, reason: str) -> None:
        """Stop the tool, started or not, and hand what it recorded on to be exported."""
        job, self._job, self._recording = self._job, None, None
        if job is None:
            return
        self._scribe.clock()
        hook = partial(self._hooks.stop, window=window, folder=job.folder / RAW)
        export = partial(self._scribe.exports.submit, job)
        seconds = None
        if self._unanswered != "start":  # that one is followed by a stop of its own
            done = self._attempt("stop", lambda: self._timed("stop", hook, export), key=job.key)
            seconds = done and done[1]
        self._scribe.tell("closed", **job.key, reason=reason, seconds=seconds)
        if not self._started:
            self._scribe.discard(job.folder)
        elif self._unanswered != "stop":  # that one is followed by the export
            export()

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
        """Let the tool's thread end."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def _ask(self, method: str, *args: Any) -> None:
        call = getattr(self._recording, method, None)
        if call is not None:
            self._attempt(method, lambda: call(*args))

    def _on_start(self, recording: Any, seconds: float) -> None:
        self._recording = recording
        self._started = True
        applied = dict(getattr(recording, "applied", None) or {})
        unsupported = dict(getattr(recording, "unsupported", None) or {})
        for option, reason in unsupported.items():
            self._boundary.tell(f"{self.name}: {option}", reason)
        key = self._job.key if self._job else {}
        self._scribe.tell(
            "started", **key, seconds=seconds, applied=applied, unsupported=unsupported
        )

    def _timed(
        self, hook: str, function: Callable[[], Any], afterwards: Callable[[], Any]
    ) -> tuple[Any, float]:
        """Call *function* within its time; *afterwards* follows a call answered too late."""
        limit = f"{hook}_timeout_s"
        timeout_s = getattr(self._limits, limit)
        began = time.monotonic()
        if self._worker is None:
            result = function()
        else:
            try:
                result = self._worker.call(function, timeout_s=timeout_s, afterwards=afterwards)
            except Overrun:
                self._unanswered = hook
                self.broken = f"{hook} was not answered within {limit} {timeout_s:g}"
                raise CaptureError(f"{self.broken}; the tool is not used again") from None
        seconds = time.monotonic() - began
        if seconds > timeout_s:
            self._break(f"its {hook} took {seconds:.1f} s, more than {limit} {timeout_s:g}")
            self._boundary.tell(f"{self.name}.{hook}", f"{self.broken}; the tool is not used again")
        return result, round(seconds, 6)

    def _attempt(
        self, hook: str, function: Callable[[], Any], key: Mapping[str, Any] | None = None
    ) -> Any:
        failed = partial(self._failed, hook, key=key)
        return self._boundary.call(f"{self.name}.{hook}", function, failed)

    def _failed(self, hook: str, error: str, key: Mapping[str, Any] | None = None) -> None:
        key = key or (self._job.key if self._job else None)
        if key is not None:
            self._scribe.tell("failed", **key, hook=hook, error=error)

    def _break(self, reason: str) -> None:
        self.broken = reason


def _make_folder(folder: Path, capture: Capture) -> None:
    (folder / RAW).mkdir(parents=True, exist_ok=True)
    text = json.dumps(attrs.asdict(capture), default=str)
    (folder / "capture.json").write_text(text, encoding="utf-8")
