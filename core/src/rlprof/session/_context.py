"""The objects that all recorders of a process share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pluggy import PluginManager

    from rlprof.config import Limits
    from rlprof.rundir import Here, RunFolder
    from rlprof.session._boundary import Boundary
    from rlprof.session._listeners import Listeners
    from rlprof.session._scribe import Scribe
    from rlprof.types import Target


@attrs.frozen
class Context:
    """Handed down from the session to its tracks and their recorders."""

    target: Target
    """The process."""
    here: Here
    run: RunFolder
    scratch: Path
    limits: Limits
    boundary: Boundary
    scribe: Scribe
    listeners: Listeners
    plugins: PluginManager
    """The manager of all recording plugins."""
    any_thread: bool
    """Windows open on another thread than the work."""
    closing: list[Callable[[Any], object]] = attrs.field(factory=list)
    """Functions that the session calls, with itself, after its last write."""
