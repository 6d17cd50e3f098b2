"""The files of a run folder, which may hold anything: FIFOs, links to nothing, folders."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from rlprof.rundir import oddity

if TYPE_CHECKING:
    from pathlib import Path


def odd(path: Path) -> str:
    """Return why *path* is not a readable file; empty if it is one."""
    try:
        return oddity(path.stat())
    except FileNotFoundError:
        return "is a link to nothing" if path.is_symlink() else "is not there"
    except ValueError:  # a name no file can have
        return "is not there"
    except OSError as exc:
        named = exc.errno != errno.ENAMETOOLONG
        return f"cannot be looked at: {exc.strerror or exc}" if named else "is not there"


def files(folder: Path, suffix: str, problems: list[str]) -> list[Path]:
    """List the files in *folder* that end in *suffix*; report other things to *problems*."""
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
