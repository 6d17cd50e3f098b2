"""The folder that torch_npu leaves of a window: its parts, and their names.

torch_npu never reports a missing part, so rlprof looks when a window ends.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOTES = "npu.json"
"""Next to torch_npu's folder: requested and applied options, marks, and how the window ended."""
OUTPUT = "ASCEND_PROFILER_OUTPUT"

_DEVICE = re.compile(r"PROF_\d+_\d+_[0-9a-zA-Z]+")
_INFO = re.compile(r"profiler_info(?:_\d+)?\.json")
_STAMP = re.compile(r"_(\d{14,20})_ascend_pt$")
_ERROR = re.compile(r"\[ERROR\](?:[^\n]*?\.py:)?([^\n]*)")
_LONGEST = 300


def write_notes(folder: Path, notes: Mapping[str, Any]) -> None:
    """Replace the notes in *folder*."""
    draft = folder / f"{NOTES}.tmp"
    draft.write_text(json.dumps(notes))
    draft.rename(folder / NOTES)


def first_error(text: str) -> str:
    """Return the first error that torch_npu printed; later ones follow from it."""
    found = _ERROR.search(text)
    return " ".join(found[1].split())[:_LONGEST] if found else ""


def find_folder(folder: Path) -> Path | None:
    """Return torch_npu's folder in *folder*; the last one, should there be several."""
    return max((path for path in folder.glob("*_ascend_pt") if path.is_dir()), default=None)


def stamp_of(made: Path) -> str:
    """Return the time in the folder's name, by which tools sort windows."""
    found = _STAMP.search(made.name)
    return found[1] if found else "0"


def missing_in(made: Path | None, activities: Sequence[str]) -> list[str]:
    """List what torch_npu should have left and did not."""
    if made is None:
        return ["torch_npu left no folder, and its output has the reason"]
    found = []
    if "cpu" in activities and not host_bytes(made):
        found.append("no event of the CPU was recorded (FRAMEWORK is empty)")
    if "npu" in activities and device_folder(made) is None:
        found.append("nothing of the NPU was recorded (there is no PROF_ folder)")
    if _info_of(made) is None:
        found.append("torch_npu did not finish (there is no profiler_info)")
    return found


def host_bytes(made: Path) -> int:
    """Return the size of what was recorded of the host."""
    return sum(file.stat().st_size for file in (made / "FRAMEWORK").glob("*"))


def device_folder(made: Path) -> Path | None:
    """Return the folder with what was recorded of the device."""
    found = (path for path in sorted(made.iterdir()) if _DEVICE.match(path.name) and path.is_dir())
    return next(found, None)


def _info_of(made: Path) -> Path | None:
    """Return the file by which torch_npu and other readers know a window."""
    found = (path for path in sorted(made.iterdir()) if _INFO.fullmatch(path.name))
    return next((path for path in found if path.is_file()), None)


def give_rank(made: Path, rank: int) -> None:
    """Write *rank* into `profiler_info` and its name, by which cluster tools know ranks.

    torch_npu takes the process' rank in its job; ours is that in its role.
    """
    path = _info_of(made)
    if path is None:
        return
    info = json.loads(path.read_bytes()) | {"rank_id": str(rank)}
    draft = made / "profiler_info.draft"
    draft.write_text(json.dumps(info, indent=4))
    path.unlink()
    draft.rename(made / f"profiler_info_{rank}.json")
