"""Whether you want no progress: `-q`, or `RLPROF_QUIET=1`."""

from __future__ import annotations

import os


def is_quiet() -> bool:
    """Return whether to print results and errors alone."""
    return os.environ.get("RLPROF_QUIET", "0") not in ("", "0")
