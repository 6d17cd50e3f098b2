"""A session that several processes share: one process opens a window, and the others join it.

An engine's workers are children of one launch, so they share one nsys session, which has one window
and one report at a time. Before the first process calls nsys, it leaves a word in the launcher's
folder; there is only one word at a time. Other processes with the same window join it once it is
open: each leaves the path of its folder, and the first process puts the whole report there.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._report import read_notes, write_notes

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN = "open"
"""The word in the launcher's folder; the keeper reads it, to close a window left open."""
GIVEN = "given.json"
"""The file that tells a joined process, in its folder, how the window ended."""
BEGINNING, IS_OPEN, ENDING = "beginning", "open", "ending"
_JOINED = "joined-"


@attrs.frozen
class Word:
    """States which window is open in a session."""

    folder: str
    """The window's folder in the process that opened it."""
    window: str
    pid: int
    who: str
    """The target that opened it."""
    state: str = IS_OPEN
    """Beginning: nsys was or will be called. Ending: no process can join any more."""


def read_word(place: str | Path) -> Word | None:
    """Read the word in the launcher's folder *place*; None: no window is open."""
    try:
        return Word(**json.loads((Path(place) / OPEN).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def claim(place: str, word: Word) -> bool:
    """Leave *word* if there is none; False: another process was first."""
    draft = Path(place) / f".{OPEN}.{os.getpid()}.claim"
    try:
        draft.write_text(json.dumps(attrs.asdict(word)), encoding="utf-8")
        os.link(draft, Path(place) / OPEN)  # atomic, and never replaces another word
    except FileExistsError:
        return False
    except OSError:  # no space, or no hard links: no process can join
        return True
    finally:
        draft.unlink(missing_ok=True)
    return True


def leave_word(place: str, word: Word) -> None:
    """Replace the word by *word*."""
    with suppress(OSError):
        write_notes(Path(place) / OPEN, attrs.asdict(word))


def take_away(place: str, word: Word) -> None:
    """Remove *word*, but not the word of another process."""
    left = read_word(place)
    if left is not None and left.pid == word.pid:
        with suppress(OSError):
            (Path(place) / OPEN).unlink()


def join(place: str, word: Word, folder: Path) -> bool:
    """Join the window of *word*, to get its report in *folder*; False: the window has ended."""
    mine = Path(word.folder) / f"{_JOINED}{os.getpid()}"
    try:
        write_notes(mine, {"pid": os.getpid(), "folder": str(folder)})
    except OSError:
        return False
    if read_word(place) == word:  # a process that ends it changes the word first
        return True
    mine.unlink(missing_ok=True)
    return False


def joined(folder: Path) -> dict[int, Path]:
    """Return the processes that joined the window of *folder*: pid → folder."""
    found = map(read_notes, folder.glob(f"{_JOINED}*[0-9]"))
    return {notes["pid"]: Path(notes["folder"]) for notes in found if notes}


def give(folder: Path, notes: Mapping[str, Any]) -> None:
    """Put *notes*, and the `file` it names, into the folder of each process that joined."""
    for other in joined(folder).values():
        with suppress(OSError):
            if notes["file"]:
                link(folder / notes["file"], other / notes["file"])
            write_notes(other / GIVEN, notes)


def link(file: Path, target: Path) -> None:
    """Hard-link *file* as *target*; on another disk, copy it."""
    target.unlink(missing_ok=True)
    try:
        os.link(file, target)
    except OSError:  # on another disk
        shutil.copyfile(file, target)
