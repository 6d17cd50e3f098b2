"""Exports, one after another, each in a helper process of its own with a deadline.

Nothing of an export runs in the training process. The helper is a session of its own, so that a
Ctrl-C at the terminal does not cut it; it ends itself when its time is over, also if we are dead.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import read_regular
from rlprof.session.export_process import RAW, export
from rlprof.session.interpreter import command, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@attrs.frozen
class Job:
    """One capture to export: its raw data, and where its artifacts go."""

    key: dict[str, Any]
    """Window and tool, as the manifest's lines about it say them."""
    folder: Path
    out: Path
    root: Path
    """The run folder; artifacts are named relative to it."""
    in_process: bool = False
    """The plugin's class is the script's own and cannot be imported elsewhere."""
    measured: Callable[[int], None] | None = None
    """Told the size of its artifacts."""


class Exports:
    """The queue; `poll` moves it on and never waits."""

    def __init__(self, timeout_s: float, discard: Callable[[Path], None]) -> None:
        self.is_here = False
        """Whether an export is going on in this very process."""
        self._timeout_s = timeout_s
        self._discard = discard
        self._waiting: deque[Job] = deque()
        self._running: tuple[Job, subprocess.Popen[bytes], float] | None = None

    def __len__(self) -> int:
        return len(self._waiting) + (self._running is not None)

    def submit(self, job: Job) -> None:
        """Put *job* at the end of the queue."""
        self._waiting.append(job)

    def poll(self) -> list[dict[str, Any]]:
        """Return the manifest lines of what has ended, and start what is next."""
        lines: list[dict[str, Any]] = []
        if self._running is not None:
            job, process, began = self._running
            late = time.monotonic() - began > self._timeout_s
            if process.poll() is None and not late:
                return lines
            if process.poll() is None:
                _kill(process)
                lines = [_failed(job, f"took longer than export_timeout_s {self._timeout_s:g}")]
            else:
                lines = self._result(job, process.returncode)
            self._running = None
        if self._waiting:
            job = self._waiting.popleft()
            if job.in_process:
                self.is_here = True
                export(job.folder, job.out, job.root)
                self.is_here = False
                return lines + self._result(job, 0)
            try:
                self._running = (job, _spawn(job, self._timeout_s), time.monotonic())
            except OSError as exc:
                lines.append(_failed(job, f"the helper process could not be started: {exc}"))
        return lines

    def _result(self, job: Job, code: int) -> list[dict[str, Any]]:
        """Read what the helper left: `exported.json`, or its last words."""
        try:
            result = json.loads(read_regular(job.folder / "exported.json", follow=False))
        except (OSError, ValueError):
            words = _last_words(job)
            return [_failed(job, f"the helper process ended with {code}: {words}")]
        lines = [
            {"event": "artifact", **job.key, "artifact": artifact}
            for artifact in result["artifacts"]
        ]
        if job.measured is not None:
            job.measured(sum(artifact["size"] for artifact in result["artifacts"]))
        if result["error"]:
            lines.append(_failed(job, result["error"]))
        lines.append({"event": "exported", **job.key, "seconds": result["seconds"]})
        if not (job.folder / RAW).exists():
            self._discard(job.folder)
        return lines

    def abandon(self) -> None:
        """Give up what has not ended; its raw data stay where they are."""
        self._waiting.clear()
        if self._running is not None:
            _kill(self._running[1])


def _spawn(job: Job, timeout_s: float) -> subprocess.Popen[bytes]:
    argv = command("rlprof.session.export_process")
    argv += [str(job.folder), str(job.out), str(job.root), f"{timeout_s:g}"]
    with (job.folder / "export.log").open("wb") as log:
        return subprocess.Popen(
            argv,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with suppress(subprocess.TimeoutExpired):  # stuck in the file system: it dies when that wakes
        process.wait(1)


def _last_words(job: Job) -> str:
    try:
        words = (job.folder / "export.log").read_text(errors="replace").strip()
    except OSError:
        words = ""
    return words.splitlines()[-1][:500] if words else "it said nothing"


def _failed(job: Job, error: str) -> dict[str, Any]:
    if job.folder.exists():
        error += f"; raw data are kept in {job.folder}"
    return {"event": "failed", **job.key, "hook": "export", "error": error}
