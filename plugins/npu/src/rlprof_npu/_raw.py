"""The folder torch_npu leaves of a window: what belongs into it, and what it is called by.

The library never says that something is missing; so it is looked for here, when a window ends and
again before it is analysed, for in between disks fill up and processes die.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOTES = "npu.json"
"""Beside that folder: what was asked and applied, clocks, and at the end what there was."""
CLOCK_MARK = "rlprof.clock"
OUTPUT = "ASCEND_PROFILER_OUTPUT"

_SUFFIX = "_ascend_pt"
_DEVICE = re.compile(r"PROF_\d+_\d+_[0-9a-zA-Z]+")
_INFO = re.compile(r"profiler_info(?:_\d+)?\.json")
_STAMP = re.compile(r"_(\d{14,20})_ascend_pt$")
_ERROR = re.compile(r"\[ERROR\](?:[^\n]*?\.py:)?([^\n]*)")
_LONGEST = 300
_MADE_LATER = (OUTPUT, "logs")
"""By an analysis: no part of the raw data."""


def first_error(text: str) -> str:
    """Return the first thing the library calls an error; what follows comes of it."""
    found = _ERROR.search(text)
    return " ".join(found[1].split())[:_LONGEST] if found else ""


def find_folder(folder: Path) -> Path | None:
    """Return the library's folder in *folder*; the last, should there be several."""
    found = sorted(path for path in folder.glob(f"*{_SUFFIX}") if path.is_dir())
    return found[-1] if found else None


def stamp_of(made: Path) -> str:
    """Return the time in the name of the library's folder, by which tools sort windows."""
    found = _STAMP.search(made.name)
    return found[1] if found else "0"


def missing_in(made: Path | None, activities: Sequence[str]) -> list[str]:
    """Say what torch_npu should have left and has not."""
    if made is None:
        return ["torch_npu left no folder, and its output has the reason"]
    found = []
    if "cpu" in activities and not host_bytes(made):
        found.append("no event of the CPU was recorded (FRAMEWORK is empty)")
    if "npu" in activities and device_folder(made) is None:
        found.append("nothing of the NPU was recorded (there is no PROF_ folder)")
    if info_of(made) is None:
        found.append("torch_npu did not finish (there is no profiler_info)")
    return found


def host_bytes(made: Path) -> int:
    """Return how much there is of the host."""
    return sum(file.stat().st_size for file in (made / "FRAMEWORK").glob("*") if file.is_file())


def device_folder(made: Path) -> Path | None:
    """Return the folder with what there is of the device."""
    found = (path for path in sorted(made.iterdir()) if _DEVICE.match(path.name) and path.is_dir())
    return next(found, None)


def info_of(made: Path) -> Path | None:
    """Return the file by which the library and all that reads it know a window."""
    found = (path for path in sorted(made.iterdir()) if _INFO.fullmatch(path.name))
    return next((path for path in found if path.is_file()), None)


def sizes_of(made: Path) -> dict[str, int]:
    """Return the size of every raw file, by its path in the library's folder."""
    return {
        str(file.relative_to(made)): file.stat().st_size
        for file in sorted(made.rglob("*"))
        if file.is_file() and file.relative_to(made).parts[0] not in _MADE_LATER
    }


def is_as_left(made: Path, sizes: Mapping[str, int]) -> bool:
    """Whether every raw file has still the size it had when the window ended.

    The analysis may have put its own beside them; `profiler_info` is renamed by us.
    """
    for name, size in sizes.items():
        file = made / name
        if _INFO.fullmatch(name):
            continue
        if not file.is_file() or file.stat().st_size != size:
            return False
    return True


def give_rank(made: Path, rank: int) -> bool:
    """Write *rank* into `profiler_info`, whose name is what cluster tools know ranks by.

    The library takes it from the environment or from torch.distributed, which know the rank of a
    process in its job; ours is that in its role. False: there is none that can be read.
    """
    path = info_of(made)
    try:
        info: Any = None if path is None else json.loads(path.read_bytes())
    except (OSError, ValueError):
        info = None
    if path is None or not isinstance(info, dict):
        return False
    _write(made, {**info, "rank_id": str(rank)}, rank)
    if path.name != f"profiler_info_{rank}.json":
        path.unlink()
    return True


def host_alone(made: Path, notes: Mapping[str, Any]) -> Path:
    """Return a folder beside *made* with what it has of the host, for the library to read."""
    alone = made.parent / "host" / made.name
    shutil.rmtree(alone, ignore_errors=True)
    (alone / "FRAMEWORK").mkdir(parents=True)
    for file in filter(Path.is_file, (made / "FRAMEWORK").iterdir()):
        shutil.copyfile(file, alone / "FRAMEWORK" / file.name)
    rebuild_info(alone, notes, host_only=True)
    return alone


def rebuild_info(made: Path, notes: Mapping[str, Any], *, host_only: bool = False) -> None:
    """Write the `profiler_info` that a killed process could not, from what was noted at its start.

    With the two clocks as they were at the start: the library has them from the end.
    """
    config = json.loads(json.dumps(notes["config"]))
    if host_only:
        common = config["common_config"]
        common["activities"] = [one for one in common["activities"] if one.endswith("CPU")]
    realtime_ns, monotonic_ns = notes["clock"]
    info = {
        "config": config,
        "start_info": notes["start_info"],
        "end_info": {"collectionTimeEnd": realtime_ns, "MonotonicTimeEnd": monotonic_ns},
        "rank_id": str(notes["rank"]),
    }
    for old in [path for path in made.iterdir() if _INFO.fullmatch(path.name)]:
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink()
    _write(made, info, int(notes["rank"]))


def _write(made: Path, info: Mapping[str, Any], rank: int) -> None:
    draft = made / "profiler_info.draft"
    draft.write_text(json.dumps(info, indent=4))
    draft.rename(made / f"profiler_info_{rank}.json")
