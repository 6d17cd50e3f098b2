"""The messages between a driver and its actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Leader
    from rlprof.types import Target
    from rlprof_run import Place


@attrs.frozen
class Answer:
    """The answer of a member to a question."""

    why_not: str = ""
    """Why it failed; empty: it was done."""
    at_ns: int = 0
    """When it was done, by the member's wall clock."""
    seconds: float = 0.0
    is_new: bool = False
    """The process knows nothing of the run: it was restarted."""
    place: Place | None = None
    """The folder in which it writes, if that is not the driver's run folder."""
    process: str = ""
    """The name of its files."""
    worker: str = ""
    """Ray's id of its process."""
    is_on_loop: bool = False
    """Its windows open and close on its event loop."""
    has_groups: bool = False
    """Some of its methods have their own threads, so its calls have no order."""
    why_full: str = ""
    """Why its process opens no further window, whatever it is asked."""
    failed: tuple[str, ...] = ()
    """The windows in which something failed, once its session is closed."""


@attrs.frozen
class Hello:
    """The data that an actor needs to follow."""

    config: Mapping[str, Any]
    run: str
    """The driver's run folder, by which all calls name the run."""
    target: Target
    leader: Leader | None
    attribute: str | None = None
    """The attribute that is a rollout engine."""
    ranks: tuple[int, ...] = ()
    is_ordered: bool = True
    """Its calls run one by one, on the working thread."""
    node_dir: str | None = None
    """A folder of each node; None: members write to the path of the driver's run folder."""
    part: str = ""
    """The run, as a path in there."""
