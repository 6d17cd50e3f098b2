"""Exports the raw data that dead processes left on the disks of this host, window by window.

It is the export of a session, run later and by hand. What comes of it goes into a manifest file of
its own, because every file of a run has one writer. Several salvages may run at once: the one that
holds the lock of a capture's `capture.json` exports it. The helper process holds another lock, of
the folder, because it may outlive the process that started it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError
from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof.session._exports import RAW, RESULT, Exports, Job, prune, result_of
from rlprof.types import safe_name
from rlprof_run import is_untried
from rlprof_run._scratch import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_run import CaptureResult, Run

_TICK_S = 0.05


@attrs.frozen
class Salvaged:
    """The outcome of one capture that was not exported."""

    capture: CaptureResult
    outcome: str
    """In words; empty: artifacts were made."""


def candidates(run: Run) -> list[CaptureResult]:
    """List the captures of ended processes that left raw data and were not exported."""
    return [
        capture
        for capture in run.captures
        if run.by_name[capture.process].state != "running"
        and (not capture.artifacts or capture.export_s is None)
        and (is_untried(capture) or (Path(capture.scratch) / RAW).exists())
    ]


def salvage(run: Run, *, timeout_s: float) -> Iterator[Salvaged]:
    """Export the captures of *run* that were not exported, one by one, if their data is here."""
    me = f"{SALVAGED}salvage-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
    journal = Journal(run.path / "manifest" / me)
    try:
        for capture in candidates(run):
            yield Salvaged(capture, _outcome(run, capture, journal, timeout_s))
    finally:
        journal.close()


def _outcome(run: Run, capture: CaptureResult, journal: Journal, timeout_s: float) -> str:
    """Export *capture* unless another process does; return why it failed."""
    if why := refusal(run, capture):
        return why
    with ExitStack() as stack:
        try:
            note = stack.enter_context(Path(capture.scratch, "capture.json").open("rb"))
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return "another salvage is running"
        return refusal(run, capture) or _exported(run, capture, journal, timeout_s)


def _exported(run: Run, capture: CaptureResult, journal: Journal, timeout_s: float) -> str:
    """Export *capture*, write the outcome, and remove the data that is no longer needed."""
    key: dict[str, Any] = {
        "of": capture.process,
        "window": attrs.asdict(capture.window),
        "tool": capture.tool,
    }
    if capture.target != run.by_name[capture.process].target:
        key["target"] = attrs.asdict(capture.target)
    lines: list[dict[str, Any]] = [{"event": "salvaged", **key, "note": _note(capture)}]
    folder = Path(capture.scratch)
    done: list[Path] = []
    if capture.closed_ns is None and _is_empty(folder):
        error = f"the window was never closed, and {capture.tool} had left nothing of it yet"
        error += "; nothing more to do"
        lines.append({"event": "failed", **key, "hook": "export", "error": error})
        done.append(folder)
    else:
        out = run.path / capture.window.folder / capture.target.folder / capture.tool
        lines += _export(Job(key, folder, out, run.path), timeout_s, done)
    mono = time.monotonic_ns()
    try:
        journal.write([as_line({"mono": mono, **line}) for line in lines])
    except OSError as exc:
        raise RunError(f"{run.path}: cannot be written: {exc.strerror or exc}") from exc
    for one in done:
        shutil.rmtree(one, ignore_errors=True)
        prune(next(above for above in one.parents if above.name == capture.process))
    errors = [str(line["error"]) for line in lines if line["event"] == "failed"]
    if errors:
        return errors[0]
    return "" if any(line["event"] == "artifact" for line in lines) else "the tool left nothing"


def _export(job: Job, timeout_s: float, done: list[Path]) -> list[dict[str, Any]]:
    """Let a helper process export *job*; return the fields for the manifest."""
    result = result_of(job.folder)
    if result is not None and result["error"]:  # of an export that failed
        (job.folder / RESULT).unlink()
    jobs = deque([job])
    exports = Exports(jobs, timeout_s, discard=done.append)
    lines: list[dict[str, Any]] = []
    try:
        while jobs:
            lines += exports.poll()
            time.sleep(_TICK_S)
    finally:
        exports.abandon()
    return lines


def _note(capture: CaptureResult) -> str:
    if capture.closed_ns is None:
        return "salvaged: the window was never closed, so its end is missing"
    if capture.state in ("failed", "partial"):
        return "salvaged: exported again, because the first export failed"
    return "salvaged: its process ended before it was exported"


def _is_empty(folder: Path) -> bool:
    """Whether the tool has left no file in *folder*, and no export has ended."""
    is_left = any(path.is_file() for path in (folder / RAW).rglob("*"))
    return not is_left and not (folder / RESULT).exists()
