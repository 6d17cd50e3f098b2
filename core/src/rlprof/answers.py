"""The values that the hooks `configure` and `advise` may return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.types import RunsOn


@attrs.frozen
class Ready:
    """A value that `configure` may return in the process.

    If a field is a function, core calls it before each `start` and `stop`.
    """

    runs_on: RunsOn | Callable[[], RunsOn] | None = None
    """Where `start` and `stop` run; None: as the class declares."""
    loop: Any = None
    """The event loop the engine lives on, or a function that returns it: core never waits on the
    thread of that loop."""


@attrs.frozen
class Advice:
    """One thing that a user should know before the run."""

    text: str
    """One line without a period at its end; for a fault, *what is wrong; what to do*."""
    about: str = ""
    """Its subject: an option, or another name. `"records"`: the text says how an engine is
    recorded, and `rlprof check` prints it after the name of the engine."""
    level: Literal["note", "warning", "fault"] = attrs.field(
        default="note", validator=attrs.validators.in_(("note", "warning", "fault"))
    )
    """`warning`: a window opens, with less. `fault`: no window can open; the config is refused,
    unless the fault is about an option that the config does not give."""


def runs_on_of(found: Ready, plugin: Any, usual: RunsOn) -> RunsOn:
    """Return where *plugin* runs now: as `configure` returned, or as its class declares."""
    runs_on: Any = found.runs_on() if callable(found.runs_on) else found.runs_on
    return cast("RunsOn", runs_on or getattr(plugin, "runs_on", usual))


def loop_of(found: Ready) -> Any:
    """Return the event loop that an engine lives on now."""
    return found.loop() if callable(found.loop) else found.loop
