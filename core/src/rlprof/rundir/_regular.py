"""Opening what somebody else may have put there: files are read, and nothing else.

A run folder is shared. A FIFO holds whoever opens it until somebody writes, `/dev/zero` never
ends, and neither may hang a command, let alone a process that trains.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MOST = 16 << 20
"""Bytes of a header, or of one line; far more than rlprof writes, and no harm to any memory."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: str | Path, *, follow: bool = True) -> BinaryIO:
    """Open the file *path* to be read; raise OSError, at once, if it is something else.

    Unless *follow*, a link is something else, too.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        fd = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    except OSError as exc:
        if exc.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "is a link, not a file", str(path)) from None
        raise
    oddity = _oddity(os.fstat(fd))
    if oddity:
        os.close(fd)
        raise OSError(errno.EINVAL, oddity, str(path))
    return os.fdopen(fd, "rb")


def read_regular(path: str | Path, *, most: int = MOST, follow: bool = True) -> bytes:
    """Return what is in the file *path*; raise OSError as above, or if it is more than *most*."""
    with open_regular(path, follow=follow) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most >> 10} KiB", str(path))
    return data


def odd(path: Path) -> str:
    """Say why *path* is no file that can be read, in words; empty if it is one."""
    try:
        return _oddity(path.stat())
    except FileNotFoundError:
        return "is a link to nothing" if path.is_symlink() else "is not there"
    except ValueError:  # a name no file can have
        return "is not there"
    except OSError as exc:
        named = exc.errno != errno.ENAMETOOLONG
        return f"cannot be looked at: {exc.strerror or exc}" if named else "is not there"


def files(folder: Path, suffix: str, problems: list[str]) -> list[Path]:
    """List the files in *folder* that end in *suffix*; tell *problems* what is there instead."""
    found = []
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(suffix))
    except FileNotFoundError:
        return []
    except OSError as exc:
        problems.append(f"{folder.name}: cannot be read: {exc.strerror or exc}")
        return []
    for name in names:
        why = odd(folder / name)
        if not why:
            found.append(folder / name)
        elif why != "is not there":  # else it has just been removed
            problems.append(f"{folder.name}/{name}: {why}; passed over")
    return found


def _oddity(status: os.stat_result) -> str:
    kind = stat.S_IFMT(status.st_mode)
    return "" if kind == stat.S_IFREG else f"is {_KINDS.get(kind, 'odd')}, not a file"
