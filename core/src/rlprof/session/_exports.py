"""Exports, one after another, each with a deadline, in a helper process.

Nothing of an export runs in the training process. A helper is given all that waits, for what takes
longest is to start it; if it ends or is killed, that costs the one it was at, and another helper
goes on with the next. It is a session of its own, so that a Ctrl-C at the terminal does not cut it;
it ends itself when its time is over, also if we are dead.
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
from rlprof.session.export_process import LOG, RAW, RESULT, export, is_finished
from rlprof.session.interpreter import command, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


_AT_ONCE = 32
"""Captures one helper is given, for what a tool leaves in its memory adds up."""


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
        self._given: deque[Job] = deque()
        """What the helper was given and has not done; the first is the one it is at."""
        self._helper: subprocess.Popen[bytes] | None = None
        self._began = 0.0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._given)

    def submit(self, job: Job) -> None:
        """Put *job* at the end of the queue."""
        self._waiting.append(job)

    def poll(self) -> list[dict[str, Any]]:
        """Return the manifest lines of what has ended, and start what is next."""
        lines: list[dict[str, Any]] = []
        if self._helper is not None:
            lines = self._look_at(self._helper)
        if self._helper is None and self._waiting:
            lines += self._here() if self._waiting[0].in_process else self._elsewhere()
        return lines

    def _look_at(self, helper: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
        """Take what *helper* has done; if it has ended or is late, what it has not waits again."""
        ended = helper.poll() is not None
        lines = self._done(until=0 if ended else 1)  # the last is done when the helper has ended
        late = time.monotonic() - self._began > self._timeout_s
        if not (ended or late):
            return lines
        if not ended:
            _kill(helper)
            lines += self._done(until=0)  # it may have been done just before
            late = time.monotonic() - self._began > self._timeout_s
        if self._given and (ended or late):
            job = self._given.popleft()
            reason = f"took longer than export_timeout_s {self._timeout_s:g}"
            if ended:
                reason = f"the helper process ended with {helper.returncode}: {_last_words(job)}"
            lines.append(_failed(job, reason))
        self._helper = None
        self._put_back()
        return lines

    def _done(self, until: int) -> list[dict[str, Any]]:
        """Take what was exported, in order, until so many are left."""
        lines: list[dict[str, Any]] = []
        while len(self._given) > until:
            result = _result(self._given[0])
            if result is None:
                break
            lines += self._told(self._given.popleft(), result)
            self._began = time.monotonic()
        return lines

    def _elsewhere(self) -> list[dict[str, Any]]:
        """Give what waits to a new helper."""
        jobs: list[Job] = []
        while self._waiting and not self._waiting[0].in_process and len(jobs) < _AT_ONCE:
            jobs.append(self._waiting.popleft())
        self._given.extend(jobs[1:])  # whatever is raised, the first is not tried again
        try:
            self._helper = _spawn(jobs, self._timeout_s)
            self._given.appendleft(jobs[0])
        except OSError as exc:
            return [_failed(jobs[0], f"the helper process could not be started: {exc}")]
        finally:
            if self._helper is None:
                self._put_back()
        self._began = time.monotonic()
        return []

    def _put_back(self) -> None:
        """Let what no helper has come to wait again, first of all."""
        self._waiting.extendleft(reversed(self._given))
        self._given.clear()

    def _here(self) -> list[dict[str, Any]]:
        """Export what waits first in this very process."""
        job, reason = self._waiting.popleft(), ""
        self.is_here = True
        try:
            export(job.folder, job.out, job.root)
        except OSError as exc:
            reason = f"{type(exc).__name__}: {exc}"
        finally:
            self.is_here = False
        result = _result(job)
        return [_failed(job, reason)] if result is None else self._told(job, result)

    def _told(self, job: Job, result: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Say what came of *job*."""
        lines = [
            {"event": "artifact", **job.key, "artifact": artifact}
            for artifact in result["artifacts"]
        ]
        if job.measured is not None:
            job.measured(sum(artifact["size"] for artifact in result["artifacts"]))
        if result["error"]:
            lines.append(_failed(job, result["error"]))
        lines.append({"event": "exported", **job.key, "seconds": result["seconds"]})
        if is_finished(result) or not (job.folder / RAW).exists():
            self._discard(job.folder)
        return lines

    def abandon(self) -> None:
        """Give up what has not ended; its raw data stay where they are."""
        self._waiting.clear()
        if self._helper is not None:
            _kill(self._helper)


def _spawn(jobs: Sequence[Job], timeout_s: float) -> subprocess.Popen[bytes]:
    argv = command("rlprof.session.export_process")
    argv += [f"{timeout_s:g}"]
    argv += [str(path) for job in jobs for path in (job.folder, job.out, job.root)]
    with (jobs[0].folder / LOG).open("wb") as log:
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


def _result(job: Job) -> dict[str, Any] | None:
    """Read what the helper left; None: nothing yet."""
    try:
        result: dict[str, Any] = json.loads(read_regular(job.folder / RESULT))
    except (OSError, ValueError):
        return None
    return result


def _last_words(job: Job) -> str:
    try:
        words = (job.folder / LOG).read_text(errors="replace").strip()
    except OSError:
        words = ""
    return words.splitlines()[-1][:500] if words else "it said nothing"


def _failed(job: Job, error: str) -> dict[str, Any]:
    if job.folder.exists():
        error += f"; raw data are kept in {job.folder}"
    else:
        error = f"{job.folder} was removed, and its raw data with it ({error})"
    return {"event": "failed", **job.key, "hook": "export", "error": error}
