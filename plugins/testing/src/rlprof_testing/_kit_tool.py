"""The tool with which the kit records runs for exporters: it writes the phases of a window."""

from __future__ import annotations

import gzip
import json
import threading
import time
from typing import TYPE_CHECKING, Any

from rlprof.errors import CaptureError
from rlprof.hookspecs import hookimpl
from rlprof.types import Artifact

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof.types import Capture


class Phases:
    """Returned by `start`; records each phase of the window."""

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        self.events: list[dict[str, Any]] = [self._event("rlprof.kit", "i")]

    def _event(self, name: str, ph: str) -> dict[str, Any]:
        ts = (time.time_ns() - self.began_ns) / 1000
        name = name.encode("utf-8", "replace").decode()
        return {"name": name, "ph": ph, "ts": ts, "pid": 1, "tid": threading.get_ident()}

    def push(self, name: str, payload: Mapping[str, Any]) -> None:
        """Open a range."""
        self.events.append(self._event(name, "B") | {"args": dict(payload)})

    def pop(self) -> None:
        """Close the range."""
        self.events.append(self._event("", "E"))


class PhaseTool:
    """Record the phases of a window into a trace."""

    runs_on = "thread"
    _phases: Phases | None = None

    @hookimpl
    def start(self) -> Phases:
        """Start to record phases."""
        self._phases = Phases()
        return self._phases

    @hookimpl
    def stop(self, folder: Path) -> None:
        """Write the phases to disk."""
        phases, self._phases = self._phases, None
        if phases is not None:
            data = {"epoch_ns": phases.began_ns, "events": phases.events}
            (folder / "phases.json").write_text(json.dumps(data))

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Write the trace."""
        try:
            data = json.loads((folder / "phases.json").read_bytes())
        except (OSError, ValueError) as exc:
            raise CaptureError(f"the window was never closed: {exc}") from exc
        header = {
            **capture.header,
            "epoch_ns": data["epoch_ns"],
            "error_ns": None,
        }
        name = f"{capture.stem}.trace.json.gz"
        with gzip.open(out / name, "wt", encoding="utf-8") as file:
            json.dump({"rlprof": header, "traceEvents": data["events"]}, file)
        return [Artifact(name, kind="trace", format="chrome-trace", events=len(data["events"]))]
