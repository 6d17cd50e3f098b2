"""The answers of a plugin: the recording that `start` returns, and where it can be called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import attrs

from rlprof.answers import Ready, runs_on_of
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


def said_by(recording: Any) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the applied and unsupported options of *recording*, and its faults."""
    said, odd = {}, ""
    if recording is not None and (
        isinstance(recording, (list, dict, set))  # a list has `pop`, and would lose what is in it
        or not any(hasattr(recording, name) for name in MEMBERS)
    ):
        odd = f"start must return a rlprof.Recording or nothing, got {shown(recording)}"
    for name in ("applied", "unsupported"):
        told = getattr(recording, name, None) or {}
        said[name] = dict(told) if isinstance(told, Mapping) else {}
        if not isinstance(told, Mapping):
            odd = f"Recording.{name} must be a mapping, got {shown(told)}"
    return said, odd


def ready_of(answer: Any, plugin: Any, usual: RunsOn, *, any_thread: bool) -> Ready:
    """Return where the configured *plugin* can be started; raise if it never can be."""
    found = answer if isinstance(answer, Ready) else Ready()
    found = attrs.evolve(found, runs_on=found.runs_on or getattr(plugin, "runs_on", usual))
    runs_on, words = runs_on_of(found, plugin, usual), get_args(RunsOn)
    if runs_on not in words:
        raise PluginError(f"runs_on is {shown(runs_on)}; it must be one of {', '.join(words)}")
    if any_thread and runs_on == "thread":
        raise PluginError(NEEDS_A_THREAD)
    return found
