"""rlprof's engine `mini`: records a mini_engine with the engine's own profiler.

The whole adapter is this file. It imports nothing of the engine: it only calls the handle.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError, Launch, hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Capture
    from rlprof.types import Place

RAW = "iterations.json"
"""What the engine writes into the folder it is given."""


@attrs.frozen
class MiniOptions:
    """Options of `mini`."""

    batches: bool = True
    """Show the size of each batch as a counter next to the iterations."""


@attrs.define(eq=False)  # identity: plugins are compared
class Mini:
    """Record the iterations of a mini_engine."""

    Options = MiniOptions
    _is_open: bool = False

    @hookimpl
    def configure(self, place: Place, handle: Any) -> Launch | None:
        """At launch ask for an engine with a profiler; in the process see that it has one."""
        if place == "launch":
            return Launch(engine_args={"profiler": True})
        _call(handle.is_profiling)
        return None

    @hookimpl
    def start(self, folder: Path, handle: Any) -> None:
        """Let the engine record into *folder*, which lies on its host."""
        _call(handle.start_profile, str(folder))
        self._is_open = True

    @hookimpl
    def stop(self, handle: Any) -> None:
        """Let it stop; that nothing is in progress is no fault of ours."""
        was_open, self._is_open = self._is_open, False
        if was_open and _call(handle.is_profiling):
            _call(handle.stop_profile)

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Turn the engine's file into a trace."""
        try:
            found = json.loads((folder / RAW).read_bytes())
        except FileNotFoundError:
            raise CaptureError("the engine left no profile: it ended inside the window") from None
        except ValueError as exc:
            raise CaptureError(f"the engine's profile was cut: {exc}") from exc
        header = {
            **capture.header,
            "epoch_ns": found["wall_ns"],
            "error_ns": None,
        }
        options = MiniOptions(**capture.options)
        events = _events(found, with_batches=options.batches)
        name = f"{capture.stem}.trace.json.gz"
        with gzip.open(out / name, "wt", encoding="utf-8") as file:
            json.dump({"rlprof": header, "traceEvents": events}, file)
        return [Artifact(name, kind="trace", format="chrome-trace", events=len(events))]


def _call(method: Any, *args: Any) -> Any:
    """Call the engine; what it refuses, and that it is gone, becomes a CaptureError."""
    try:
        return method(*args)
    except Exception as exc:  # the engine's own errors; importing them would import the engine
        raise CaptureError(f"mini_engine: {exc}") from exc


def _events(found: dict[str, Any], *, with_batches: bool) -> list[dict[str, Any]]:
    """Make a slice of each iteration, and a counter of its batch; their tracks have names."""
    track = {"pid": found["pid"], "tid": 1}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "args": {"name": "mini_engine"}} | track,
        {"ph": "M", "name": "thread_name", "args": {"name": "loop"}} | track,
    ]
    for began, took, requests in found["iterations"]:
        place = track | {"ts": began / 1000}
        args = {"requests": requests}
        event = {"ph": "X", "cat": "engine", "name": "iteration", "dur": took / 1000, "args": args}
        events.append(event | place)
        if with_batches:
            events.append({"ph": "C", "name": "batch", "args": args} | place)
    return events
