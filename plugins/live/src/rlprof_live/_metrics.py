"""Figures as a text file for node_exporter's textfile collector: no port, no service."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof.types import Target

_EVERY_S = 1.0
_PHASE = "rlprof/phase/"


class Metrics:
    """Keeps one file up to date, replacing it as a whole."""

    def __init__(self, file: Path, run_id: str, target: Target) -> None:
        self._file = file
        self._labels = {"run": run_id, "role": target.role, "rank": str(target.rank)}
        self._next = 0.0
        self._written: Mapping[str, float] = {}

    def write(self, figures: Mapping[str, float]) -> None:
        """Write *figures* if they are new, at most once a second; raise OSError if it cannot be."""
        if figures == self._written or not figures or time.monotonic() < self._next:
            return
        self._written = figures
        self._next = time.monotonic() + _EVERY_S
        self._file.parent.mkdir(exist_ok=True)
        draft = self._file.with_suffix(".tmp")
        draft.write_text(text_of(figures, self._labels, time.time()), encoding="utf-8")
        draft.replace(self._file)

    def remove(self) -> None:
        """Remove the file: an ended run has no current figures."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
            self._file.parent.rmdir()  # it was the last one's


def text_of(figures: Mapping[str, float], labels: Mapping[str, str], now: float) -> str:
    """Write *figures* as Prometheus reads them; phases are a label."""
    lines, typed = [], set()
    for key, value in [*figures.items(), ("rlprof/updated_timestamp_seconds", now)]:
        name, own = key.replace("/", "_"), dict(labels)
        if key.startswith(_PHASE):
            name, own["phase"] = "rlprof_phase_s", key.removeprefix(_PHASE).removesuffix("_s")
        if name not in typed:
            typed.add(name)
            lines.append(f"# TYPE {name} gauge")
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in own.items())
        lines.append(f"{name}{{{pairs}}} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
