"""The run folder at home, as what comes from other nodes may be written to it.

A file comes under another name, and gets its own when it is whole. Folders are opened one in the
other and links are not followed, so that nothing lands outside, whatever was put there meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rlprof_ray import _paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOM = ".collect"
"""Below the run folder: files that are not whole yet, and the lock of who brings them."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


class Part:
    """A file that comes, and what of it was here before."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._digest = hashlib.sha256()
        self.size = 0
        while block := os.read(fd, _BLOCK):
            self._digest.update(block)
            self.size += len(block)

    @property
    def sha256(self) -> str:
        """The checksum of what is here."""
        return self._digest.hexdigest()

    def add(self, data: bytes) -> None:
        """Write *data* behind it; raise OSError if not all of it can be."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        self._digest.update(data)
        self.size += len(data)

    def clear(self) -> None:
        """Begin anew."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.truncate(self._fd, 0)
        self._digest = hashlib.sha256()
        self.size = 0

    def sync(self, mtime_ns: int) -> None:
        """Have it on disk: what it was copied from is about to be removed.

        It keeps its time: by that of its manifest a process of another host is taken for dead.
        """
        os.utime(self._fd, ns=(mtime_ns, mtime_ns))
        os.fsync(self._fd)


class Landing:
    """Where files of a run come home; one at a time has it."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.sign = f"{ROOM}/here-{secrets.token_hex(8)}"
        """A file that is in this very folder, while it is held, and in no other."""
        self._root = self._room = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make room in the run folder; raise OSError where that cannot be, or another has it."""
        self._root = os.open(self.run, _FOLDER & ~os.O_NOFOLLOW)
        try:
            self._room = self._inner(self._root, ROOM)
            with self._locked():
                name = self.sign.rpartition("/")[2]
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=self._room))
                try:
                    yield
                finally:
                    os.unlink(name, dir_fd=self._room)
        finally:
            with suppress(OSError):  # it holds parts of what could not be brought
                os.rmdir(ROOM, dir_fd=self._root)
            for fd in (self._room, self._root):
                if fd >= 0:
                    os.close(fd)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open("lock", flags, 0o644, dir_fd=self._room)
        if not _lock(fd):
            os.close(fd)
            raise OSError(errno.EBUSY, "somebody else is bringing it home")
        try:
            yield
        finally:
            os.unlink("lock", dir_fd=self._room)
            os.close(fd)

    def size(self, path: str) -> int | None:
        """Return the size of a file that is home; None: there is none of that name."""
        try:
            with self._folder_of(path, make=False) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise OSError("something else has its name in the run folder")
        return found.st_size

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file that is home."""
        with self._folder_of(path, make=False) as (folder, name):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            return Part(fd).sha256
        finally:
            os.close(fd)

    @contextmanager
    def part(self, key: str) -> Iterator[Part]:
        """Open what has come of a file before, or nothing."""
        flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(_part(key), flags, 0o644, dir_fd=self._room)
        try:
            yield Part(fd)
        finally:
            os.close(fd)

    def drop(self, key: str) -> None:
        """Remove what has come of a file."""
        with suppress(FileNotFoundError):
            os.unlink(_part(key), dir_fd=self._room)

    def land(self, key: str, path: str) -> None:
        """Give what has come the name *path*."""
        with self._folder_of(path, make=True) as (folder, name):
            os.rename(_part(key), name, src_dir_fd=self._room, dst_dir_fd=folder)

    def free(self) -> int:
        """Say how many bytes the disk takes."""
        found = os.fstatvfs(self._root)
        return found.f_bavail * found.f_frsize if found.f_blocks else sys.maxsize

    @contextmanager
    def _folder_of(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        """Open the folder of *path*, from the run folder down."""
        why = _paths.why_not(path)
        if why:
            raise OSError(why)
        *above, name = path.split("/")
        folder = os.dup(self._root)
        try:
            for one in above:
                inner = self._inner(folder, one, make=make)
                os.close(folder)
                folder = inner
            yield folder, name
        finally:
            os.close(folder)

    def _inner(self, folder: int, name: str, *, make: bool = True) -> int:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except OSError as exc:
            if exc.errno in (errno.ELOOP, errno.ENOTDIR):
                raise OSError(f"{name} in the run folder is no folder") from None
            raise


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return os.fstat(fd).st_nlink > 0  # else its last holder has just removed it


def _part(key: str) -> str:
    return f"{hashlib.sha256(os.fsencode(key)).hexdigest()[:32]}.part"
