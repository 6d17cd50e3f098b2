"""Folders of launchers that were killed: the next one takes them away.

A launcher locks a file in its folder as long as it lives: a folder whose lock is free is nobody's
any more. What nsys still has to write, it writes first. Only what this kernel can tell of is
touched: a folder on a shared disk may be another host's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from rlprof_nsys._processes import born_with_tmpdir, end, has_tmpdir

PREFIX = "rlprof-nsys-"
_LOCK, _SEEN = "lock", "abandoned"
_PATIENCE_S = 90.0
"""How long what was abandoned may take to end by itself, from when it was first seen."""


def claim(folder: Path) -> None:
    """Lock *folder* until this process ends or execs; without locks nobody takes it away."""
    part = folder / f"{_LOCK}.part"
    with suppress(OSError):
        held = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(held, _here().encode())
        part.rename(folder / _LOCK)  # only now can another one find it


def clear_abandoned(tmp: Path) -> None:
    """Remove the folders in *tmp* whose launcher is dead, and what it has left running."""
    with suppress(OSError):
        for folder in tmp.glob(f"{PREFIX}*"):
            with suppress(OSError):
                if _is_ours(folder):
                    _clear(folder)


def _is_ours(folder: Path) -> bool:
    return not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.geteuid()


def _clear(folder: Path) -> None:
    """Take *folder* away if nobody needs it; raise OSError where its launcher lives."""
    held = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.read(held, 4096).decode(errors="replace") != _here():
            return
        left = list(born_with_tmpdir(str(folder)))
        if left and not _is_overdue(folder):
            return
        for pid in left:
            end(pid, lambda pid: has_tmpdir(pid, str(folder)))
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)


def _is_overdue(folder: Path) -> bool:
    """Whether somebody has seen it abandoned long ago; else leave word that it was seen now."""
    seen = folder / _SEEN
    try:
        return time.time() - seen.stat().st_mtime > _PATIENCE_S
    except FileNotFoundError:
        seen.touch()
        return False


def _here() -> str:
    """Name the kernel and its processes that this one sees: of others nothing is known."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 -- no path
