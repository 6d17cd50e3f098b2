"""Exporting what dead processes have left: the raw data on this host's disk, window by window.

It runs long after training, by hand; what comes of it goes into a manifest file of its own, for
every file of a run has one writer.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError
from rlprof.rundir import SALVAGED, TRIED, Journal, as_line
from rlprof.session._exports import Exports, Job
from rlprof.session.export_process import RAW
from rlprof.types import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof.rundir import CaptureResult, Run

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
    me = f"{SALVAGED}salvage-{safe_name(socket.gethostname())}-{os.getpid()}"
    journal = Journal(run.path / "manifest" / f"{me}.jsonl")
    exports = Exports(timeout_s, discard=_discard)
    try:
        for capture in candidates(run):
            why = _why_not(run, capture)
            yield Salvaged(capture, why or _one(run, capture, exports, journal))
    finally:
        exports.abandon()
        journal.close()


def _why_not(run: Run, capture: CaptureResult) -> str:
    """Say why the raw data of *capture* cannot be had here; empty if they can."""
    folder = Path(capture.scratch)
    host = run.by_name[capture.process].here.host
    try:
        owner = (folder / "capture.json").stat().st_uid
    except OSError:
        if host != socket.gethostname():
            return f"its raw data lie on {host}; run this there"
        return f"nothing is left in {folder}"
    if owner != os.getuid():  # it names the code that is about to be run
        return f"{folder} belongs to another user; let that one do it"
    return ""


def _one(run: Run, capture: CaptureResult, exports: Exports, journal: Journal) -> str:
    key: dict[str, Any] = {
        "of": capture.process,
        "window": attrs.asdict(capture.window),
        "tool": capture.tool,
    }
    if capture.target != run.by_name[capture.process].target:
        key["target"] = attrs.asdict(capture.target)
    cut = capture.closed_ns is None
    note = (
        "salvaged: the window was never closed, so its end is missing"
        if cut
        else "salvaged: its process ended before it was exported"
    )
    lines: list[dict[str, Any]] = [{"event": "salvaged", **key, "note": note}]
    is_gone = cut and _is_empty(Path(capture.scratch) / RAW)
    if is_gone:
        error = f"the window was never closed, and {capture.tool} had left nothing of it yet"
        error += "; nothing more to do"
        lines.append({"event": "failed", **key, "hook": "export", "error": error})
    else:
        out = run.path / capture.window.folder / capture.target.folder / capture.tool
        exports.submit(Job(key, Path(capture.scratch), out, run.path))
    while len(exports):
        lines += exports.poll()
        time.sleep(_TICK_S)
    mono = time.monotonic_ns()
    try:
        journal.write([as_line({"mono": mono, **line}) for line in lines])
    except OSError as exc:
        raise RunError(f"{run.path}: cannot be written: {exc.strerror or exc}") from exc
    if is_gone:
        _discard(Path(capture.scratch))
    errors = [str(line["error"]) for line in lines if line["event"] == "failed"]
    if errors:
        return errors[0]
    return "" if any(line["event"] == "artifact" for line in lines) else "the tool left nothing"


def _is_empty(raw: Path) -> bool:
    """Whether there is no file in *raw*, the one folder an export reads."""
    return not any(path.is_file() for path in raw.rglob("*"))


def _discard(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
