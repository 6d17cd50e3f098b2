"""From raw data to artifacts, in the helper process: the analysis, the trace, torch_npu's files.

torch_npu's files stay together in one folder under their own names, by which `msprof-analyze
cluster` and MindStudio Insight find them.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError
from rlprof_npu import _raw, _trace
from rlprof_npu._analysis import analyse, missing_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rlprof import Capture

_FORMATS = {".csv": "csv", ".json": "json", ".db": "sqlite"}
_KEPT = ("profiler_info_*.json", "profiler_metadata.json", f"{_raw.OUTPUT}/**/*")
"""The parts of torch_npu's folder that are useful after the analysis."""
_COMMAND = "msprof-analyze cluster -d {run}/"
_KILLED = "the process ended before the window did; these are the raw data that were on disk"


def export(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Make artifacts of the raw data in *folder*; note what is missing."""
    notes: dict[str, Any] = json.loads((folder / _raw.NOTES).read_bytes())
    made = _raw.find_folder(folder)
    remarks, lost = list(notes.get("said", ())), list(notes.get("missing", ()))
    if made is None:
        raise CaptureError("; ".join(lost) or "torch_npu left no raw data")
    found: list[Artifact] = []
    failures = [] if "has_ended" in notes else [_KILLED]
    if not failures:
        _raw.give_rank(made, notes["rank"])
    is_analysed = notes["analysis"] == "after" and not failures
    if is_analysed:
        failures = _analysed(made, notes)
    lost += failures
    if is_analysed:
        if "text" in notes["export_type"]:
            found += _trace_of(capture, made, out, notes=notes, lost=lost, remarks=remarks)
        kept = {path for pattern in _KEPT for path in made.glob(pattern)}
        files = sorted(path for path in kept if path.suffix in _FORMATS)
        if not found and not any(_raw.OUTPUT in path.parts for path in files):
            raise CaptureError("; ".join(lost) or "the analysis left nothing")
    else:
        files = sorted(made.rglob("*"))
    tree = f"{capture.stem}_{_raw.stamp_of(made)}_ascend_pt"
    names = _copy(made, files, out / tree)
    for name in names:
        form = _FORMATS.get(name[name.rfind(".") :], "raw")
        found.append(Artifact(path=f"{tree}/{name}", kind="files", format=form))
    if not found:
        raise CaptureError("; ".join(lost) or "torch_npu left nothing")
    note = "; ".join(dict.fromkeys([*lost, *remarks]))
    first, *rest = (attrs.evolve(one, status="partial" if lost else "whole") for one in found)
    return [
        attrs.evolve(
            first, note=note, command="" if failures else _COMMAND + capture.window.folder
        ),
        *rest,
    ]


def _analysed(made: Path, notes: dict[str, Any]) -> list[str]:
    """Run the analysis; return what is missing."""
    applied, exports = notes["applied"], notes["export_type"]
    wanted = [
        one for one in applied["activities"] if one != "npu" or _raw.device_folder(made) is not None
    ]
    why = analyse(made, notes["timeout_s"])
    missing = missing_of(made, activities=wanted, level=applied["level"], exports=exports)
    wrong = "; ".join(filter(None, [why, *missing]))
    return [f"torch_npu's analysis failed: {wrong}"] if wrong else []


def _trace_of(
    capture: Capture,
    made: Path,
    out: Path,
    *,
    notes: dict[str, Any],
    lost: list[str],
    remarks: list[str],
) -> list[Artifact]:
    """Put torch_npu's trace on the wall clock; add its faults to *lost* and *remarks*."""
    raw, applied = made / _raw.OUTPUT / "trace_view.json", notes["applied"]
    if not raw.is_file():
        return []  # the analysis has failed, and that was said
    name = f"{capture.stem}.trace.json.gz"
    header = {**capture.header, "applied": applied}
    try:
        found = _trace.finish(raw, out / name, header=header, marks=notes["marks"])
    except (OSError, ValueError) as exc:
        lost.append(f"there is no trace: {exc}")
        return []
    if found.truncated:
        lost.append("trace_view.json has no end, though torch_npu calls it done")
    if found.dropped:
        lost.append(f"{found.dropped} entries of trace_view.json were no events")
    if not found.events:
        lost.append("trace_view.json holds no event")
    if "npu" in applied["activities"] and not found.device_events:
        remarks.append("no event of the NPU, although contents include npu")
    return [
        Artifact(
            path=name,
            kind="trace",
            format="chrome-trace",
            events=found.events,
            text_size=found.text_size,
        )
    ]


def _copy(made: Path, files: Iterable[Path], there: Path) -> list[str]:
    """Copy *files* of the folder *made*, and its empty folders; return the files' names."""
    shutil.rmtree(there, ignore_errors=True)  # of an export that did not finish
    names = []
    for file in files:
        inside = file.relative_to(made)
        if inside.parts[0] == "logs":
            continue
        if file.is_dir():  # torch_npu looks for some by name
            (there / inside).mkdir(parents=True, exist_ok=True)
        elif file.is_file() and file.stat().st_size:
            (there / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, there / inside)
            names.append(str(inside))
    return names
