"""The values that hooks may return, and what they mean to core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import attrs

from rlprof.errors import PluginError, shown
from rlprof.types import RunsOn

MEMBERS = ("push", "pop", "minibatch", "applied", "unsupported")
"""The members of a Recording that core uses; each is optional."""

NEEDS_A_THREAD = (
    "it records the thread it is started on, and this process is async or threaded: windows open "
    "on another thread than its work; use a tool that records the process, or make its calls come "
    "one by one"
)

ON_ITS_LOOP = (
    "the phase was entered on the engine's own event loop, which cannot answer while it waits; "
    "enter it by `async with`, or with asyncio.to_thread"
)


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


def ready_of(answer: Any, declared: Ready) -> Ready:
    """Return where a plugin runs: as `configure` answered, or as its class declares."""
    found = answer if isinstance(answer, Ready) else declared
    return attrs.evolve(found, runs_on=found.runs_on or declared.runs_on)


def runs_on_of(ready: Ready) -> Any:
    """Return where a plugin runs now."""
    return ready.runs_on() if callable(ready.runs_on) else ready.runs_on


def check_ready(ready: Ready, *, any_thread: bool) -> None:
    """Raise PluginError if the plugin can never be started."""
    runs_on, words = runs_on_of(ready), get_args(RunsOn)
    if runs_on not in words:
        raise PluginError(f"runs_on is {shown(runs_on)}; it must be one of {', '.join(words)}")
    if any_thread and runs_on == "thread":
        raise PluginError(NEEDS_A_THREAD)


def options_of(recording: Any) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the applied and unsupported options of *recording*, and its faults."""
    options, odd = {}, ""
    if recording is not None and (
        isinstance(recording, (list, dict, set))  # a list has `pop`, and would lose what is in it
        or not any(hasattr(recording, name) for name in MEMBERS)
    ):
        odd = f"start must return a rlprof.Recording or nothing, got {shown(recording)}"
    for name in ("applied", "unsupported"):
        value = getattr(recording, name, None) or {}
        options[name] = dict(value) if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            odd = f"Recording.{name} must be a mapping, got {shown(value)}"
    return options, odd
