"""Data from the launcher to the tool inside the program, in one environment variable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "NSYS_RLPROF"
"""The variable; it does not begin with RLPROF, because such variables name a run."""
DOMAIN = "rlprof"
"""The NVTX domain of the ranges."""
RANGE = "rlprof window"
"""The range that delimits a window in range mode."""


@attrs.frozen
class Mark:
    """How the program was launched."""

    session: str = ""
    """The session of `nsys launch`; empty: the program runs unprofiled."""
    nsys: str = ""
    folder: str = ""
    """The launcher's folder, which is also TMPDIR of nsys."""
    trace: str = ""
    """The APIs traced, from the arguments of `nsys launch`."""
    asked: Mapping[str, Any] = attrs.field(factory=dict)
    """The options at launch: `trace`, `env`, `options`."""
    why: str = ""
    """Why the program runs unprofiled."""

    def text(self) -> str:
        """Return the value of the variable."""
        return json.dumps(attrs.asdict(self))


def read_mark(environ: Mapping[str, str]) -> Mark | None:
    """Read the mark; None: no launcher started this process."""
    try:
        return Mark(**json.loads(environ[MARK]))
    except (KeyError, ValueError, TypeError):
        return None
