"""From raw data to artifacts, in the helper process: the analysis, the trace, the library's files.

The library's files stay together in one folder, by their own names: whoever reads them, such as
`msprof-analyze cluster`, finds them by those.
"""

from __future__ import annotations

import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError
from rlprof_npu import _cluster, _raw, _trace
from rlprof_npu._analysis import analyse, missing_of
from rlprof_npu._notes import read_notes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof import Capture

_FORMATS = {".csv": "csv", ".json": "json", ".db": "sqlite"}
_KEPT = ("profiler_info_*.json", "profiler_metadata.json", f"{_raw.OUTPUT}/**/*")
"""What of the library's folder is of use once it is analysed."""


def export(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Make artifacts of the raw data in *folder*; what is missing of them is said."""
    notes = read_notes(folder)
    made = _raw.find_folder(folder)
    if made is None:
        raise CaptureError(" and ".join(notes.get("missing") or ["torch_npu left no raw data"]))
    applied = notes.get("applied") or {}
    activities = list(applied.get("activities") or ())
    said, lost = list(notes.get("said") or ()), list(notes.get("missing") or ())
    if "sizes" not in notes:
        lost.append(_revive(made, notes, activities))
    elif not (_raw.is_as_left(made, notes["sizes"]) and _raw.give_rank(made, notes["rank"])):
        lost.append("raw data were lost after the window had ended")
        _raw.rebuild_info(made, notes)
    found: list[Artifact] = []
    told: list[str] = []
    files = [path for path in sorted(made.rglob("*")) if path.is_file()]
    if notes.get("analysis") == "after":
        made, told = _analysed(made, notes, activities)
        lost += told
        if "text" in notes["export_type"]:
            found += _trace_of(capture, made, out, notes=notes, lost=lost, said=said)
        files = sorted({path for kept in _KEPT for path in made.glob(kept) if path.is_file()})
        files = [path for path in files if path.suffix in _FORMATS]
        if not found and not any(_raw.OUTPUT in path.parts for path in files):
            raise CaptureError("; ".join(lost) or "the analysis left nothing")
    tree = f"{capture.stem}_{_raw.stamp_of(made)}_ascend_pt"
    kept = _kept(made, files, out, tree)
    command, problem = _cluster.join(capture, out, tree, kept)
    command = "" if told else command  # what is missing here is missing there
    lost += filter(None, [problem])
    found += [_artifact(tree, file) for file in kept]
    if notes.get("analysis") != "after":
        _keep_empty_folders(made, out / tree)
    return _told(found, command, said, lost)


def _revive(made: Path, notes: dict[str, Any], activities: list[str]) -> str:
    """Make what a killed process has left readable; say what it is."""
    if "start_info" not in notes or "config" not in notes:
        raise CaptureError("the process ended while torch_npu started to record")
    if not _raw.host_bytes(made) and _raw.device_folder(made) is None:
        raise CaptureError(
            "the process ended before torch_npu had written anything to disk; what it had was in "
            "its memory"
        )
    _raw.rebuild_info(made, notes)
    which = "the host and the device" if "npu" in activities else "the host"
    return f"the process ended before the window did; what was on disk of {which} by then is here"


def _analysed(made: Path, notes: dict[str, Any], activities: list[str]) -> tuple[Path, list[str]]:
    """Run the analysis; return where it is, and what is wrong with what it has left."""
    level, exports = str(notes["applied"].get("level")), notes["export_type"]
    wanted = [one for one in activities if one != "npu" or _raw.device_folder(made) is not None]
    timeout_s = float(notes.get("timeout_s") or 540)
    why = analyse(made, timeout_s)
    missing = missing_of(made, activities=wanted, level=level, exports=exports)
    if not missing and not why:
        return made, []
    told = f"torch_npu's analysis failed: {'; '.join(filter(None, [why, *missing]))}"
    if "sizes" in notes or wanted != activities or len(wanted) < 2 or not _raw.host_bytes(made):
        return made, [told]
    # CANN cannot read what it has not finished itself; what is of the host can be had.
    alone = _raw.host_alone(made, notes)
    why = analyse(alone, timeout_s)
    if why or missing_of(alone, activities=["cpu"], level=level, exports=exports):
        return made, [told, f"and again for the host alone: {why}"]
    return alone, [told, "the host alone is here"]


def _trace_of(
    capture: Capture,
    made: Path,
    out: Path,
    *,
    notes: dict[str, Any],
    lost: list[str],
    said: list[str],
) -> Iterator[Artifact]:
    """Lay the library's trace on the wall clock; add to *lost* and *said* what is to say of it."""
    raw = made / _raw.OUTPUT / "trace_view.json"
    name = f"{capture.stem}.trace.json.gz"
    header = {**capture.header, "applied": notes["applied"]}
    if raw.exists() and not raw.is_file():
        lost.append("there is no trace: trace_view.json is no file")
        return
    try:
        found = _trace.finish(raw, out / name, header=header, marks=notes.get("marks") or ())
    except (OSError, ValueError) as exc:
        lost.append(f"there is no trace: {exc}")
        return
    if found.truncated:
        lost.append("trace_view.json has no end, though torch_npu calls it done")
    if found.dropped:
        lost.append(f"{found.dropped} entries of trace_view.json were no events")
    if not found.events:
        lost.append("trace_view.json holds no event")
    if "npu" in notes["applied"]["activities"] and not found.device_events:
        said.append("no event of the NPU, which was asked for")
    yield Artifact(
        path=name,
        kind="trace",
        format="chrome-trace",
        events=found.events,
        text_size=found.text_size,
    )


def _kept(made: Path, files: list[Path], out: Path, tree: str) -> list[str]:
    """Copy *files* into the folder *tree*, as they lie in the library's; return their paths."""
    shutil.rmtree(out / tree, ignore_errors=True)  # of an export that was not finished
    kept = []
    for file in files:
        inside = file.relative_to(made)
        if inside.parts[0] == "logs" or not file.stat().st_size:
            continue
        there = out / tree / inside
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)
        kept.append(str(inside))
    return kept


def _artifact(tree: str, file: str) -> Artifact:
    form = _FORMATS.get(PurePath(file).suffix, "raw")
    return Artifact(path=f"{tree}/{file}", kind="files", format=form)


def _keep_empty_folders(made: Path, there: Path) -> None:
    """Make the folders of raw data that hold nothing, too: an analysis looks for some by name."""
    for folder in made.rglob("*"):
        inside = folder.relative_to(made)
        if folder.is_dir() and inside.parts[0] != "logs":
            (there / inside).mkdir(parents=True, exist_ok=True)


def _told(found: list[Artifact], command: str, said: list[str], lost: list[str]) -> list[Artifact]:
    """Say of all artifacts whether they are whole, and once what there is to say."""
    status: Any = "partial" if lost else "whole"
    note = "; ".join(dict.fromkeys([*lost, *said]))
    if not found:
        raise CaptureError(note or "torch_npu left nothing")
    first, *rest = (attrs.evolve(one, status=status) for one in found)
    return [attrs.evolve(first, note=note, command=command), *rest]
