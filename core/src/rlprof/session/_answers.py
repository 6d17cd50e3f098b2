"""What a plugin may answer: the recording that `start` returns, and where it can be called."""

from __future__ import annotations

from typing import Any, get_args

from rlprof.answers import Ready, runs_on_of
from rlprof.errors import PluginError, shown
from rlprof.types import RunsOn

MEMBERS = ("push", "pop", "minibatch", "applied", "unsupported")
"""What core looks for in a Recording; each may be left out."""

NEEDS_A_THREAD = (
    "it records the thread it is started on, and this process is async or threaded: windows open "
    "on another thread than its work; use a tool that records the process, or make its calls come "
    "one by one"
)

ON_ITS_LOOP = (
    "the phase was entered on the engine's own event loop, which cannot answer while it waits; "
    "enter it by `async with`, or with asyncio.to_thread"
)


def odd_recording(recording: Any) -> str:
    """Say what is wrong with what `start` returned; empty if it is one, or nothing."""
    if recording is None or any(hasattr(recording, name) for name in MEMBERS):
        return ""
    return f"start must return a rlprof.Recording or nothing, got {shown(recording)}"


def ready_of(answer: Any, plugin: Any, usual: RunsOn, *, any_thread: bool) -> Ready:
    """Return where *plugin*, which is configured, can be started; raise where it never can be."""
    found = answer if isinstance(answer, Ready) else Ready()
    runs_on, words = runs_on_of(found, plugin, usual), get_args(RunsOn)
    if runs_on not in words:
        raise PluginError(f"runs_on is {shown(runs_on)}; it must be one of {', '.join(words)}")
    if any_thread and runs_on == "thread":
        raise PluginError(NEEDS_A_THREAD)
    return found
