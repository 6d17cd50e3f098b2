"""The driver's run folder, where files of other nodes arrive.

A file arrives under a temporary name, and gets its final name when it is whole. Links are not
followed.
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
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlprof_ray import _paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOM = ".collect"
"""Below the run folder: files that are not whole yet, and the lock of the collecting process."""
_BLOCK = 1 << 20


class Part:
    """An arriving file, and the part of it that arrived before."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._digest = hashlib.sha256()
        self.size = 0
        while block := os.read(fd, _BLOCK):
            self._digest.update(block)
            self.size += len(block)

    @property
    def sha256(self) -> str:
        """The checksum of the part that is here."""
        return self._digest.hexdigest()

    def add(self, data: bytes) -> None:
        """Append *data*; raise OSError if it cannot be written whole."""
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
        """Sync it to disk: its source is about to be removed.

        It keeps its time: readers take a process for dead by the time of its manifest.
        """
        os.utime(self._fd, ns=(mtime_ns, mtime_ns))
        os.fsync(self._fd)


class Landing:
    """The place where files of a run arrive; one process at a time holds it."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.sign = f"{ROOM}/here-{secrets.token_hex(8)}"
        """A file that exists in this folder, while it is held, and in no other."""
        self._room = run / ROOM

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the folder for arriving files; raise OSError if another process has it."""
        self._room.mkdir(exist_ok=True)
        sign = self.run / self.sign
        try:
            with self._locked():
                sign.touch()
                try:
                    yield
                finally:
                    sign.unlink()
        finally:
            with suppress(OSError):  # it holds parts of files that could not be collected
                self._room.rmdir()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        file = self._room / "lock"
        fd = _opened(file)
        if not _lock(fd):
            os.close(fd)
            raise OSError(errno.EBUSY, "another process is collecting it")
        try:
            yield
        finally:
            file.unlink()
            os.close(fd)

    def size(self, path: str) -> int | None:
        """Return the size of a collected file; None: there is no such file."""
        try:
            found = self._file(path).lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise OSError("something else has its name in the run folder")
        return found.st_size

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a collected file."""
        fd = os.open(self._file(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return Part(fd).sha256
        finally:
            os.close(fd)

    @contextmanager
    def part(self, key: str) -> Iterator[Part]:
        """Open the part of a file that arrived before; it may be empty."""
        fd = _opened(self._room / _part(key))
        try:
            yield Part(fd)
        finally:
            os.close(fd)

    def drop(self, key: str) -> None:
        """Remove the part of a file that arrived."""
        (self._room / _part(key)).unlink(missing_ok=True)

    def land(self, key: str, path: str) -> None:
        """Give the arrived file its name *path*."""
        file = self._file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        (self._room / _part(key)).rename(file)

    def free(self) -> int:
        """Return the free bytes of the disk."""
        found = os.statvfs(self.run)
        return found.f_bavail * found.f_frsize if found.f_blocks else sys.maxsize

    def _file(self, path: str) -> Path:
        """Name the file in the run folder; raise OSError if a link leads out of it."""
        why = _paths.why_not(path)
        if why:
            raise OSError(why)
        for above in PurePosixPath(path).parents:
            folder = self.run / above
            if above.name and (folder.is_symlink() or folder.is_file()):
                raise OSError(f"{above} in the run folder is not a folder")
        return self.run / path


def _opened(file: Path) -> int:
    return os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


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
