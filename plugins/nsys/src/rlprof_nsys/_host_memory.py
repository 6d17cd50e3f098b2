"""The memory that all nsys of a host share: one lock for all of them, and an end to it if spoiled.

nsys (2022.4) keeps its sessions in `/dev/shm/NSys-VERSION`. Who begins makes it, the last one takes
it away, and a file below TMPDIR is the lock for both. With a TMPDIR for each launch nobody waits
for anybody: of two launches at the same moment one finds memory that is half made. It then stays
so, and no nsys of the host starts a program any more.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof_nsys._program import Program

MEMORY = Path("/dev/shm")  # noqa: S108 -- where nsys has it
_NAME = "NSys-"
_LOCKS = ("nvidia", "nsight_systems")
"""Where nsys has its lock, below TMPDIR."""
_COMMON = Path("/tmp")  # noqa: S108 -- the TMPDIR of who has none, and so of most
_POLL_S = 0.1


def share_lock(program: Program) -> None:
    """Lead the lock in the folder of *program* to the one that all others of this host use.

    Where that one is closed to us, nsys makes one of its own.
    """
    version = program.version().partition("-")[0]
    if not version:
        return
    name = _lock_of(_NAME + version)
    with suppress(OSError):
        common = _locks_below(_COMMON) / name
        with suppress(FileExistsError):
            made = os.open(common, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            os.fchmod(made, 0o666)
            os.close(made)
        os.close(os.open(common, os.O_RDWR))
        (_locks_below(Path(program.folder)) / name).symlink_to(common)


def _locks_below(tmp: Path) -> Path:
    """Make the folders as nsys does: where they are not open to all it records no NVTX (2022.4)."""
    folder = tmp
    for name in _LOCKS:
        folder /= name
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o777)
    return folder


def free_what_nobody_uses(*, patience_s: float = 0.0) -> None:
    """Remove what is ours of that memory and no process has, where need be after *patience_s*.

    To be called where nsys does not start: those that hang there, too, give up one by one.
    """
    end = time.monotonic() + patience_s
    while False in [_is_freed(file) for file in _ours()] and time.monotonic() < end:
        time.sleep(_POLL_S)


def _ours() -> list[Path]:
    found = []
    for file in MEMORY.glob(f"{_NAME}*"):
        with suppress(OSError):  # it went by itself
            if file.stat().st_uid == os.geteuid() and file.is_file():
                found.append(file)
    return found


def _is_freed(file: Path) -> bool:
    """Remove *file* under its lock, so that nobody begins with it meanwhile; False: it is used."""
    with suppress(OSError), _COMMON.joinpath(*_LOCKS, _lock_of(file.name)).open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_used(file):
            file.unlink(missing_ok=True)
            return True
    return False


def _lock_of(memory: str) -> str:
    return f"SessionManager-{memory.removeprefix(_NAME)}.lock"


def _is_used(file: Path) -> bool:
    """Whether a process has *file*; of another user's only the name is seen, and an nsys counts."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text(errors="replace").startswith("nsys"):
                if _state(folder) not in "ZX":
                    return True
            elif folder.stat().st_uid == os.geteuid() and str(file) in _maps(folder):
                return True
        except OSError:  # it has ended, or is one that nobody may look at: no program of a user's
            continue
    return False


def _maps(folder: Path) -> str:
    return (folder / "maps").read_text(errors="replace")


def _state(folder: Path) -> str:
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
