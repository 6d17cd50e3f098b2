"""Whether a run can write to its folders: tried with real files, which are removed again.

This runs in a child process, because a hanging file system hangs its caller.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof_cli.doctor._finding import Finding, unless_wrong
from rlprof_cli.table import size

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCRATCH_ROOM = 10**9
"""The raw data of a few windows, on local disk."""
_TRIAL = 1 << 20
_FAR_S = 5.0
_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs"})
_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs",
    "fuse.glusterfs", "fuse.juicefs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "9p", "wekafs",
    "pvfs2", "orangefs", "afs",
})  # fmt: skip
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


def look_at_run_dir(path: str, room: int) -> list[Finding]:
    """Try *path* as the folder of runs; it should have room for *room* bytes."""
    where, folder = f"run_dir {path}", Path(path).absolute()
    if "://" in path:
        why = import_module("rlprof_bucket").fault_of(path)
        advice = "check the URL, the credentials, and whether its package is installed (s3fs)"
        fine = Finding("ok", where, "can be written")
        return [Finding("BAD", where, why, advice) if why else fine]
    advice = "name a run_dir you may write to, which all hosts see"
    try:
        with _trial(folder) as trial:
            wrong = [*_full(where, trial, room), *_links(where, trial), *_clock(where, trial)]
    except OSError as exc:
        return [_refused(where, exc, advice)]
    kind = _kind_of(folder)
    if kind in _MEMORY:
        what = f"is in memory ({kind}): it is lost with the machine, and uses its memory"
        wrong.append(Finding("warn", where, what, "name a run_dir on a disk"))
    if kind == "overlay":
        what = "is in the container (overlay): it is lost with the container"
        wrong.append(Finding("warn", where, what, "name a run_dir on a volume"))
    return unless_wrong(where, f"can be written ({_free(folder)}, {kind or 'unknown'})", wrong)


def look_at_scratch(path: str | None) -> list[Finding]:
    """Try the folder for raw data; None: the system's folder, to which `TMPDIR` should lead."""
    try:
        folder = Path(path or tempfile.gettempdir()).absolute()
    except FileNotFoundError as exc:
        what = f"no folder for temporary files can be written: {exc.strerror or exc}"
        return [Finding("BAD", "TMPDIR", what, "make room, or set TMPDIR to a local disk")]
    where = f"scratch_dir {folder}"
    try:
        with _trial(folder) as trial:
            wrong = _full(where, trial, _SCRATCH_ROOM)
    except OSError as exc:
        advice = "make room, or set scratch_dir (or TMPDIR) to a local disk you may write to"
        wrong = [_refused(where, exc, advice)]
    wrong += _others(where, folder)
    kind = _kind_of(folder)
    if kind in _NETWORK:
        what = f"is on a network file system ({kind}), so a step waits when the file system does"
        wrong.append(Finding("warn", where, what, "set scratch_dir to a local disk"))
    return unless_wrong(where, f"can be written ({_free(folder)}, {kind or 'unknown'})", wrong)


@contextmanager
def borrowed(folder: Path) -> Iterator[Path]:
    """Create a folder in *folder*, and remove all that was created afterwards."""
    parents = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix=".rlprof-doctor-", dir=folder))
        try:
            yield own
        finally:
            shutil.rmtree(own, ignore_errors=True)
    finally:
        for parent in parents:
            try:
                parent.rmdir()
            except OSError:  # never made, or another process has begun to use it
                break


@contextmanager
def _trial(folder: Path) -> Iterator[Path]:
    """Write into *folder* as a run does."""
    with borrowed(folder) as own:
        with (own / "file").open("wb") as file:
            file.write(bytes(_TRIAL))
            file.flush()
            os.fsync(file.fileno())  # a full disk may report it only now
        yield own


def _refused(where: str, exc: OSError, advice: str) -> Finding:
    why = exc.strerror or str(exc)
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return Finding("BAD", where, f"is full ({why})", advice)
    if exc.errno == errno.EFBIG:
        return Finding("BAD", where, f"a file of 1 MB is too big ({why})", "ulimit -f unlimited")
    at = f" {exc.filename}" if exc.filename else ""
    return Finding("BAD", where, f"cannot be written: {why}{at}", advice)


def _full(where: str, folder: Path, room: int) -> list[Finding]:
    stat = os.statvfs(folder)
    free = stat.f_bavail * stat.f_frsize
    if free < room:
        what = f"{size(free)} are free, of {size(room)} that may be needed"
        return [Finding("warn", where, what, "make room, or set limits.bytes lower")]
    return []


def _links(where: str, folder: Path) -> list[Finding]:
    try:
        os.link(folder / "file", folder / "link")
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        what = "has no hard links, so two jobs that begin a run at once may both take it as"
        advice = "set RLPROF_RUN_ID for each job, or take another file system"
        return [Finding("warn", where, f"{what} theirs", advice)]
    return []


def _clock(where: str, folder: Path) -> list[Finding]:
    """Judge the times of files: they show which runs of other hosts are live."""
    (folder / "file").write_bytes(b"x")
    away = (folder / "file").stat().st_mtime - time.time()
    if abs(away) <= _FAR_S:
        return []
    what = f"the clock of its server is {away:+.0f} s from ours"
    return [Finding("warn", where, what, "synchronise both, or live runs are taken for dead")]


def _others(where: str, folder: Path) -> list[Finding]:
    """Check the user's folder in a shared scratch; a session refuses one of another user."""
    home = folder / f"rlprof-{os.getuid()}"
    try:
        found = home.lstat()
    except OSError:
        return []
    if not home.is_symlink() and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return []
    what = f"others may write to {home.name} in it"
    return [Finding("BAD", where, what, "remove it, or name another scratch_dir")]


def _kind_of(folder: Path) -> str:
    """Return the kind of the file system of *folder*; empty if the system does not say."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    kinds = {}  # a later mount hides an earlier one
    for line in mounts:
        _, point, kind, *_ = line.split(" ")
        kinds[Path(point.replace("\\040", " "))] = kind
    home = folder.resolve()
    return next((kinds[one] for one in (home, *home.parents) if one in kinds), "")


def _free(folder: Path) -> str:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    stat = os.statvfs(there)
    return f"{size(stat.f_bavail * stat.f_frsize)} free"
