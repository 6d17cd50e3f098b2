"""The lines of the leading process on stderr: the run folder, and the number of recordings."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.config import Config
    from rlprof.rundir import RunFolder
    from rlprof.types import Target


def announced(
    config: Config, run: RunFolder, target: Target
) -> Callable[[int, int], object] | None:
    """Print where the run is, and return a function that prints what was recorded.

    It takes how many windows this process has opened, and in how many something failed.

    It prints nothing in quiet mode.
    """
    is_quiet = config.quiet or os.environ.get("RLPROF_QUIET", "0") not in ("", "0")
    if is_quiet:
        return None
    records = any(config.records(role) for role in config.roles)
    _print(f"records{'' if records else ' spans'} into {_shown(run)}")

    def closed(windows: int, failed: int) -> None:
        verb = "fetch" if run.url else "ls"
        if not records and not run.url:
            _print(f"see why steps are slow with: rlprof why {_shown(run)}")
            return
        count = "1 window" if windows == 1 else f"{windows} windows"
        who = f" by {target}" if target.world_size > 1 else ""
        who += f", {failed} with failures" if failed else ""
        what = "opened" if failed else "recorded"
        _print(f"{count} {what}{who}; look at the run with: rlprof {verb} {_shown(run)}")

    return closed


def _shown(run: RunFolder) -> str:
    """Return the URL of *run*, or its path, shortened for a shell in the working directory."""
    with suppress(OSError, ValueError):
        return run.url or str(run.path.relative_to(Path.cwd()))
    return str(run.path)


def _print(words: str) -> None:
    with suppress(Exception):  # a stderr that is closed, full or the user's own
        if sys.stderr is not None:
            sys.stderr.write(f"rlprof: {words}\n")
            sys.stderr.flush()
