"""Reads regular files only, in folders that others may write to; makes folders of the user.

A run folder is shared. A FIFO blocks its reader until somebody writes, `/dev/zero` never ends, and
neither may hang a command, let alone a training process.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from rlprof.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

MOST = 16 << 20
"""Bytes of a header, or of one line; far more than rlprof writes, and no harm to any memory."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""The errors of a file system without links."""


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
    what = oddity(os.fstat(fd))
    if what:
        os.close(fd)
        raise OSError(errno.EINVAL, what, str(path))
    return os.fdopen(fd, "rb")


def read_regular(path: str | Path, *, most: int = MOST, follow: bool = True) -> bytes:
    """Return the content of *path*; raise OSError as above, or if it is larger than *most*."""
    with open_regular(path, follow=follow) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most >> 10} KiB", str(path))
    return data


def oddity(status: os.stat_result) -> str:
    """Say in words what is there instead of a file; empty: it is a file."""
    if stat.S_ISREG(status.st_mode):
        return ""
    kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
    return f"is {kind}, not a file"


def own_folder(base: Path) -> Path:
    """Make the user's folder below *base*, for raw data and measurements.

    Its files decide which code an export runs, so nobody else may write there.
    """
    home = base / f"rlprof-{os.getuid()}"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        words = exc.strerror or exc
        raise RunError(f"{home}: cannot be made: {words}; name another scratch_dir") from exc
    found = home.lstat()
    if home.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise RunError(f"{home}: others may write there; remove it or name another scratch_dir")
    if found.st_mode & 0o077:  # by a loose umask, what lies in it may be anybody's to write to
        with suppress(OSError):  # a file system without modes
            home.chmod(0o700)
    return home


def scratch_name(place: str, tool: str) -> str:
    """Name the scratch folder of a capture by *place*, the folder of its window, and its tool.

    One folder rather than three, because a step waits for each of them to be made.
    """
    return f"{place.replace('/', '+')}+{tool}"
