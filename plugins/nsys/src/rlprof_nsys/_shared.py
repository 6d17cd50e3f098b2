"""A session that several processes share: one of them begins a window, the others join it.

An engine's workers are children of one launch, and so in one session of nsys, which has one window
at a time, in one report. Who comes first begins it, and leaves word of it in the launcher's folder.
Who comes to the same window then joins: it leaves its own folder with the first one, which lays the
report there once it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._notes import read_notes, write_notes

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN = "open"
"""The word, in the launcher's folder; it reads that, too, and ends what a program leaves open."""
GIVEN = "given.json"
"""In the folder of who has joined: how the window ended."""
_JOINED = "joined-"


@attrs.frozen
class Word:
    """Which window is open in a session."""

    folder: str
    """Of who has begun it."""
    window: str
    pid: int
    who: str
    """The target that has begun it."""
    is_ending: bool = False
    """Nobody can join any more."""


def read_word(place: str | Path) -> Word | None:
    """Read the word in the launcher's folder *place*; None: no window is open."""
    try:
        return Word(**json.loads((Path(place) / OPEN).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def leave_word(place: str, word: Word | None) -> None:
    """Leave *word*, or take away what is there; where there is no launcher's folder do nothing."""
    if not place:
        return
    with suppress(OSError):
        if word is None:
            (Path(place) / OPEN).unlink(missing_ok=True)
        else:
            write_notes(Path(place) / OPEN, attrs.asdict(word))


def join(place: str, word: Word, folder: Path) -> bool:
    """Join the window of *word*, to have its report in *folder*; False: it is over by now."""
    mine = Path(word.folder) / f"{_JOINED}{os.getpid()}"
    try:
        write_notes(mine, {"pid": os.getpid(), "folder": str(folder)})
    except OSError:
        return False
    if read_word(place) == word:  # who ends it says so first, and looks for the joined then
        return True
    mine.unlink(missing_ok=True)
    return False


def joined(folder: Path) -> dict[int, Path]:
    """Return who has joined the window of *folder*: process → its own folder."""
    found = {}
    for file in folder.glob(f"{_JOINED}*[0-9]"):
        said = read_notes(file)
        with suppress(KeyError, TypeError, ValueError):
            found[int(said["pid"])] = Path(said["folder"])
    return found


def give(folder: Path, said: Mapping[str, Any]) -> None:
    """Lay the `file` that *said* names into the folders of those who have joined, and *said*."""
    for other in joined(folder).values():
        with suppress(OSError):
            if said["file"]:
                _link(folder / said["file"], other / said["file"])
            write_notes(other / GIVEN, said)


def given(folder: Path) -> Mapping[str, Any] | None:
    """Return what was said of the report that was laid into *folder*; None: nothing yet."""
    return read_notes(folder / GIVEN) or None


def is_alive(pid: int) -> bool:
    """Whether there is such a process here."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _link(file: Path, target: Path) -> None:
    try:
        os.link(file, target)
    except OSError:  # on another disk
        shutil.copyfile(file, target)
