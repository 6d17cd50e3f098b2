"""The folder on local disk that is the user's alone: raw data, and what was measured."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path


def own_folder(base: Path) -> Path:
    """Make the user's own folder below *base*, a folder for temporary files.

    What lies in it says which code an export runs, so nobody else may write there.
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
