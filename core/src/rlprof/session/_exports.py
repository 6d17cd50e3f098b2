"""Exports the captures that wait, in order, in a helper process.

No part of an export runs in the training process. One helper takes all waiting captures, because
starting it takes longer than most exports. If a helper dies or hangs, its current capture is lost,
and a new helper continues with the next. It has a separate session, so that a Ctrl-C at the
terminal does not end it. It also ends itself when its time is over, in case we are dead.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.session._job import RAW, Job

if TYPE_CHECKING:
    import subprocess
    from collections import deque
    from collections.abc import Callable, Mapping, Sequence

    from rlprof.types import Artifact

__all__ = ["LOG", "RAW", "RESULT", "Exports", "Job", "export", "is_finished", "prune", "result_of"]

LOG = "export.log"
"""In the scratch folder of a capture: the output of the export."""
RESULT = "exported.json"
"""Next to it: the outcome of the export."""
_AT_ONCE = 32
"""Captures for one helper: memory that a tool does not free adds up."""


class Exports:
    """Takes *jobs* off their queue; `poll` moves it on and never waits."""

    def __init__(
        self, jobs: deque[Job], timeout_s: float, discard: Callable[[Path], object]
    ) -> None:
        self.is_here = False
        """Whether an export runs in this very process."""
        self._timeout_s = timeout_s
        self._discard = discard
        self._jobs = jobs
        self._given = 0
        """How many of them the helper still has, from the first on."""
        self._helper: subprocess.Popen[bytes] | None = None
        self._began = 0.0

    def poll(self) -> list[dict[str, Any]]:
        """Return the manifest lines of ended exports, and start the next."""
        lines = [] if self._helper is None else self._look_at(self._helper)
        if self._helper is None and self._jobs:
            try:
                if self._jobs[0].in_process:
                    lines += self._here()
                else:
                    self._start()
            except OSError as exc:
                lines += self._failed(f"the export could not run: {exc}")
        return lines

    def _start(self) -> None:
        # By number: another thread may add to the queue, which ends an iteration over it.
        first = (self._jobs[number] for number in range(min(len(self._jobs), _AT_ONCE)))
        jobs = list(takewhile(lambda job: not job.in_process, first))
        self._helper = _spawn(jobs, self._timeout_s)
        self._given, self._began = len(jobs), time.monotonic()

    def _here(self) -> list[dict[str, Any]]:
        job = self._jobs[0]
        self.is_here = True
        try:
            result = export(job.folder, job.out, job.root)
        finally:
            self.is_here = False
        return self._ended(result)

    def _look_at(self, helper: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
        """Take the results of *helper*; if it has ended or is late, give up its current export."""
        has_ended = helper.poll() is not None
        is_late = not has_ended and time.monotonic() - self._began > self._timeout_s
        if is_late:
            _kill(helper)
        least = 0 if has_ended or is_late else 1  # the last is done when the helper has ended
        lines: list[dict[str, Any]] = []
        while self._given > least and (result := result_of(self._jobs[0].folder)) is not None:
            lines += self._ended(result)
            self._given -= 1
            self._began = time.monotonic()
        if least:
            return lines
        if self._given and has_ended:
            words = _last_words(self._jobs[0])
            lines += self._failed(f"the helper process ended with {helper.returncode}: {words}")
        elif self._given and not lines:  # else it was done just before we killed its helper
            lines += self._failed(f"took longer than export_timeout_s {self._timeout_s:g}")
        self._helper, self._given = None, 0
        return lines

    def _ended(self, result: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the outcome of the first, and take it off the queue."""
        job, artifacts = self._jobs.popleft(), result["artifacts"]
        if job.measured is not None:
            job.measured(sum(artifact["size"] for artifact in artifacts))
        lines = [{"event": "artifact", **job.key, "artifact": artifact} for artifact in artifacts]
        if result["error"]:
            lines.append(_failure(job, result["error"]))
        if is_finished(result):
            self._discard(job.folder)
        return [*lines, {"event": "exported", **job.key, "seconds": result["seconds"]}]

    def _failed(self, error: str) -> list[dict[str, Any]]:
        """Return why the first failed, and take it off the queue."""
        return [_failure(self._jobs.popleft(), error)]

    def abandon(self) -> None:
        """Give up the rest; its raw data stays in place."""
        self._jobs.clear()
        self._given = 0
        if self._helper is not None:
            _kill(self._helper)


def result_of(folder: Path) -> dict[str, Any] | None:
    """Return the outcome of the export of *folder*; None: it has not ended."""
    try:
        result: dict[str, Any] = json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    return result


def export(folder: Path, out: Path, root: Path) -> dict[str, Any]:
    """Let the tool export the data in *folder*; write the outcome there, and return it."""
    began = time.monotonic()
    artifacts: list[Artifact] = []
    error = ""
    try:
        from rlprof.session._artifacts import made_of  # a process that only waits needs none of it

        artifacts, error = made_of(folder, out, root)
    except (Exception, SystemExit) as exc:  # code of a plugin: its message goes into the manifest
        error = f"{type(exc).__name__}: {exc}"
    result: dict[str, Any] = {
        "artifacts": [attrs.asdict(artifact) for artifact in artifacts],
        "seconds": round(time.monotonic() - began, 6),
        "error": error,
    }
    draft = folder / f"{RESULT}.tmp"
    draft.write_text(json.dumps(result))
    draft.rename(folder / RESULT)
    if is_finished(result):  # last: a kill in between loses nothing
        shutil.rmtree(folder / RAW, ignore_errors=True)
    return result


def is_finished(result: Mapping[str, Any]) -> bool:
    """Whether the raw data of *result* is no longer needed."""
    whole = all(artifact["status"] == "whole" for artifact in result["artifacts"])
    return whole and not result["error"]


def prune(scratch: Path) -> None:
    """Remove the empty folders in *scratch*, of an ended process, and then those of its run.

    Folders in the `raw` of a capture stay: its tool may need them.
    """
    for folder, _, _ in os.walk(scratch, topdown=False):
        if RAW not in Path(folder).relative_to(scratch).parts:
            with suppress(OSError):  # holds what could not be exported
                Path(folder).rmdir()
    with suppress(OSError):  # holds another process' data
        scratch.parent.rmdir()


def _spawn(jobs: Sequence[Job], timeout_s: float) -> subprocess.Popen[bytes]:
    import subprocess

    from rlprof.session.interpreter import command, environment

    paths = [str(path) for job in jobs for path in (job.folder, job.out, job.root)]
    with (jobs[0].folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command("rlprof.session.export_process", f"{timeout_s:g}", *paths),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    import subprocess

    process.kill()
    with suppress(subprocess.TimeoutExpired):  # stuck in the file system: it dies when that wakes
        process.wait(1)


def _last_words(job: Job) -> str:
    words: list[str] = []
    with suppress(OSError):
        words = (job.folder / LOG).read_text(errors="replace").strip().splitlines()
    return words[-1][:500] if words else "it printed nothing"


def _failure(job: Job, error: str) -> dict[str, Any]:
    fate = "are kept in" if job.folder.exists() else "were removed with"
    error += f"; raw data {fate} {job.folder}"
    return {"event": "failed", **job.key, "hook": "export", "error": error}
