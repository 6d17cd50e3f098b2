"""What the launcher tells the tool inside the program: one variable of its environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "NSYS_RLPROF"
"""The variable; not one of rlprof's own, for those name a run."""
DOMAIN = "rlprof"
"""The NVTX domain of the ranges."""
RANGE = "rlprof window"
"""The range that a window is in range mode."""


@attrs.frozen
class Mark:
    """How the program was born."""

    session: str = ""
    """Of `nsys launch`; empty: the program runs unprofiled."""
    nsys: str = ""
    folder: str = ""
    """The launcher's own, and TMPDIR of nsys."""
    trace: str = ""
    """The APIs traced, from the arguments of `nsys launch`."""
    refused: Mapping[str, str] = attrs.field(factory=dict)
    """What was asked and this nsys does not know: word → reason."""
    asked: Mapping[str, Any] = attrs.field(factory=dict)
    """What was asked then: `trace`, `env`, `options`."""
    why: str = ""
    """Why it runs unprofiled."""

    def text(self) -> str:
        """Write it as the value of the variable."""
        return json.dumps(attrs.asdict(self))


def read_mark(environ: Mapping[str, str]) -> Mark | None:
    """Read it; None where no launcher was."""
    try:
        return Mark(**json.loads(environ[MARK]))
    except (KeyError, ValueError, TypeError):
        return None
