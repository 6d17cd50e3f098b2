"""Exporting what dead processes have left: the raw data on this host's disk, window by window.

It runs long after training, by hand; what comes of it goes into a manifest file of its own, for
every file of a run has one writer. Several may be at work at once: a capture is whose its lock is,
from before its export until the manifest says what came of it and its folder is gone. The lock of
the folder itself is the helper process', which may outlive who started it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError
from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof.session._exports import Exports, Job
from rlprof.session.export_process import RAW, RESULT, is_done
from rlprof.types import safe_name
from rlprof_run import TRIED
from rlprof_run._scratch import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_run import CaptureResult, Run

_TICK_S = 0.05


@attrs.frozen
class Salvaged:
    """What became of one capture that was not exported."""

    capture: CaptureResult
    outcome: str
    """In words; empty: artifacts were made."""


def candidates(run: Run) -> list[CaptureResult]:
    """List the captures whose process is over and which left raw data, exported by nobody."""
    return [
        capture
        for capture in run.captures
        if run.by_name[capture.process].state != "running"
        and (not capture.artifacts or capture.export_s is None)
        and (_may_lie_elsewhere(capture) or (Path(capture.scratch) / RAW).exists())
    ]


def _may_lie_elsewhere(capture: CaptureResult) -> bool:
    return capture.state == "lost" and not any(note.startswith(TRIED) for note in capture.notes)


def salvage(run: Run, *, timeout_s: float) -> Iterator[Salvaged]:
    """Export the captures of *run* that nobody exported, one by one, as far as they lie here."""
    me = f"{SALVAGED}salvage-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
    journal = Journal(run.path / "manifest" / me)
    done: list[Path] = []
    exports = Exports(timeout_s, discard=done.append)
    try:
        for capture in candidates(run):
            with _held(Path(capture.scratch) / "capture.json") as is_mine:
                outcome = "another salvage is at it"
                if is_mine:
                    outcome = refusal(run, capture) or _one(run, capture, exports, journal, done)
                while done:  # what came of them is in the manifest
                    _discard(done.pop(), f"{run.run_id}-{run.attempt}")
            yield Salvaged(capture, outcome)
    finally:
        exports.abandon()
        journal.close()


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Hold the lock of *path* while the block runs; False: somebody else does."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, ValueError):  # nothing is there to be held
        yield True
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_mine = True
    except OSError:
        is_mine = False
    try:
        yield is_mine
    finally:
        os.close(fd)


def _one(
    run: Run, capture: CaptureResult, exports: Exports, journal: Journal, done: list[Path]
) -> str:
    """Export *capture*; say why nothing came of it. What is not needed any more is *done*."""
    key: dict[str, Any] = {
        "of": capture.process,
        "window": attrs.asdict(capture.window),
        "tool": capture.tool,
    }
    if capture.target != run.by_name[capture.process].target:
        key["target"] = attrs.asdict(capture.target)
    cut = capture.closed_ns is None
    note = "salvaged: its process ended before it was exported"
    if cut:
        note = "salvaged: the window was never closed, so its end is missing"
    elif capture.state in ("failed", "partial"):
        note = "salvaged: exported again, for the first export had failed"
    lines: list[dict[str, Any]] = [{"event": "salvaged", **key, "note": note}]
    folder = Path(capture.scratch)
    if cut and _is_empty(folder):
        error = f"the window was never closed, and {capture.tool} had left nothing of it yet"
        error += "; nothing more to do"
        lines.append({"event": "failed", **key, "hook": "export", "error": error})
        done.append(folder)
    else:
        if not is_done(folder):
            (folder / RESULT).unlink(missing_ok=True)  # of an export that failed
        out = run.path / capture.window.folder / capture.target.folder / capture.tool
        exports.submit(Job(key, folder, out, run.path))
    while len(exports):
        lines += exports.poll()
        time.sleep(_TICK_S)
    mono = time.monotonic_ns()
    try:
        journal.write([as_line({"mono": mono, **line}) for line in lines])
    except OSError as exc:
        raise RunError(f"{run.path}: cannot be written: {exc.strerror or exc}") from exc
    errors = [str(line["error"]) for line in lines if line["event"] == "failed"]
    if errors:
        return errors[0]
    return "" if any(line["event"] == "artifact" for line in lines) else "the tool left nothing"


def _is_empty(folder: Path) -> bool:
    """Whether no export would find a file in *folder*, none has, and none is going on."""
    with _held(folder) as is_idle:
        is_left = any(path.is_file() for path in (folder / RAW).rglob("*"))
        return is_idle and not is_left and not (folder / RESULT).exists()


def _discard(folder: Path, life: str) -> None:
    """Remove *folder*, and the folders above it up to *life* that are empty then."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    names = [parent.name for parent in folder.parents]
    if life in names:
        with suppress(OSError):  # one of them holds something else
            for parent in folder.parents[: names.index(life) + 1]:
                parent.rmdir()
