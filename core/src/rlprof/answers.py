"""What the hooks `configure` and `advise` may answer, as frozen values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.types import RunsOn


@attrs.frozen
class Ready:
    """What `configure` may answer in the process.

    Core calls a function before each `start` and `stop`, for what may change.
    """

    runs_on: RunsOn | Callable[[], RunsOn] | None = None
    """Where `start` and `stop` run; None: where the class says."""
    loop: Any = None
    """The event loop the engine lives on, or a function that returns it: core never waits on that
    loop's own thread."""


@attrs.frozen
class Advice:
    """One thing that a user should know before the run."""

    text: str
    """One line without a period at its end; of a fault, *what is wrong; what to do*."""
    about: str = ""
    """The option it is about, or another name of what it is about. `"records"`: what records an
    engine, which `rlprof check` prints beside the engine's name."""
    level: Literal["note", "warning", "fault"] = attrs.field(
        default="note", validator=attrs.validators.in_(("note", "warning", "fault"))
    )
    """`warning`: a window opens, with less. `fault`: no window can open; the config is refused,
    unless the fault is about an option that the config does not give."""


def runs_on_of(found: Ready, plugin: Any, usual: RunsOn) -> RunsOn:
    """Return where *plugin* runs now: as it said when it was configured, or as its class says."""
    runs_on: Any = found.runs_on() if callable(found.runs_on) else found.runs_on
    return cast("RunsOn", runs_on or getattr(plugin, "runs_on", usual))


def loop_of(found: Ready) -> Any:
    """Return the event loop that an engine lives on now."""
    return found.loop() if callable(found.loop) else found.loop
