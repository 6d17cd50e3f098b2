"""A session that several processes share: one of them begins a window, the others join it.

An engine's workers are children of one launch, and so in one session of nsys, which has one window
at a time, in one report. Who comes first leaves word of it in the launcher's folder, before nsys is
asked: there is one word at a time. Who comes to the same window then joins, once it is open: it
leaves its own folder with the first one, which lays the report there once it is whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._notes import NOTES, read_notes, write_notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OPEN = "open"
"""The word, in the launcher's folder; it reads that, too, and ends what a program leaves open."""
GIVEN = "given.json"
"""In the folder of a process that joined: how the window ended."""
BEGINNING, IS_OPEN, ENDING = "beginning", "open", "ending"
_JOINED = "joined-"
_POLL_S = 0.05


@attrs.frozen
class Word:
    """Which window is open in a session."""

    folder: str
    """Of who has begun it."""
    window: str
    pid: int
    who: str
    """The target that has begun it."""
    state: str = IS_OPEN
    """Beginning: nsys has been asked, or will be. Ending: nobody can join any more."""

    def is_of_whom(self, other: Word | None) -> bool:
        """Whether *other* is a word of the same process on the same window."""
        return other is not None and (self.pid, self.folder) == (other.pid, other.folder)


def read_word(place: str | Path) -> Word | None:
    """Read the word in the launcher's folder *place*; None: no window is open."""
    try:
        return Word(**json.loads((Path(place) / OPEN).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def claim(place: str, word: Word) -> bool:
    """Leave *word* if there is none; False: somebody else has come first."""
    draft = Path(place) / f".{OPEN}.{os.getpid()}.claim"
    try:
        draft.write_text(json.dumps(attrs.asdict(word)), encoding="utf-8")
        try:
            os.link(draft, Path(place) / OPEN)  # whole or not at all, and never over another's
        except FileExistsError:
            return False
        finally:
            draft.unlink()
    except OSError:  # no room, or no hard links: nobody can join this window
        return True
    return True


def leave_word(place: str, word: Word) -> None:
    """Leave *word* instead of what is there; where there is no launcher's folder do nothing."""
    if place:
        with suppress(OSError):
            write_notes(Path(place) / OPEN, attrs.asdict(word))


def take_away(place: str, word: Word) -> None:
    """Take *word* away, and no other process' word."""
    if word.is_of_whom(read_word(place)):
        with suppress(OSError):
            (Path(place) / OPEN).unlink(missing_ok=True)


@contextmanager
def alone(file: Path, *, until: float) -> Iterator[bool]:
    """Hold *file* while the block runs, as one process at a time can; False: another has it."""
    with file.open("a") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(_POLL_S)
        yield True


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
        _give(folder, other, said)


def given(folder: Path) -> Mapping[str, Any] | None:
    """Return what was said of the report that was laid into *folder*; None: nothing yet."""
    return read_notes(folder / GIVEN) or None


def give_late(folder: Path, file: str, why: str, ended_ns: int) -> None:
    """Give *file* to those who have joined and were given nothing: who began the window died."""
    for other in joined(folder).values():
        if (other / NOTES).is_file() and given(other) is None:
            _give(folder, other, {"file": file, "why": why, "ended_ns": ended_ns})


def is_alive(pid: int) -> bool:
    """Whether there is such a process here; one that nobody has buried yet is none."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except FileNotFoundError:
        return False
    except (OSError, IndexError):  # it ends just now
        return _answers(pid)
    return state not in (b"Z", b"X")


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _give(folder: Path, other: Path, said: Mapping[str, Any]) -> None:
    with suppress(OSError):
        if said["file"]:
            link(folder / said["file"], other / said["file"])
        write_notes(other / GIVEN, said)


def link(file: Path, target: Path) -> None:
    """Have *file* at *target*, too: the same one on one disk, else a copy."""
    with suppress(OSError):
        if file.samefile(target):
            return
    try:
        os.link(file, target)
    except OSError:  # on another disk
        shutil.copyfile(file, target)
