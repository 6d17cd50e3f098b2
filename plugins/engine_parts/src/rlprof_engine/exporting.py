"""Exports one window of an engine: its requests, its traces, and a summary of the answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact
from rlprof_engine.recording import IDLE
from rlprof_engine.requests import FILE, begun_in, trace_of
from rlprof_engine.traces import artifact_of

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rlprof import Capture
    from rlprof_engine.traces import Looked, Whose

_BAD = ("failed", "refused", "idle")
"""The states of an answer that are no recording."""
NOBODY_LEFT = "the process that held the engine ended inside the window"


@attrs.define
class Exported:
    """What is made of one window."""

    capture: Capture
    folder: Path
    out: Path
    notes: Mapping[str, Any]
    """The notes of the window; empty if the process that held the engine has died."""
    made: list[Artifact] = attrs.field(factory=list)
    found: list[dict[str, Any]] = attrs.field(factory=list)
    """What was found in each trace."""
    begun: int = 0
    """Requests that got their first token in the window."""

    @classmethod
    def of(cls, capture: Capture, folder: Path, out: Path, notes: str) -> Exported:
        """Begin with the file *notes* in the window's folder."""
        try:
            found = json.loads((folder / notes).read_bytes())
        except (OSError, ValueError):
            found = {}
        return cls(capture, folder, out, found)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The facts of the engine."""
        return self.notes.get("facts") or {}

    @property
    def ended(self) -> list[dict[str, Any]]:
        """The answers at the end of the window."""
        return (self.notes.get("answers") or {}).get("ended") or []

    @property
    def unended(self) -> list[str]:
        """Say so if no process has answered the end of a window that was recorded inside."""
        return [] if self.ended else ["no process of the engine answered the end of the window"]

    def add_requests(self, *, counts: bool = True) -> None:
        """Make the trace of the requests; *counts*: the engine's steps are for them alone."""
        file = self.folder / FILE
        if file.exists():
            self.begun = begun_in(file) if counts else 0
            steps = sum(one.get("iterations") or 0 for one in self.ended) if counts else 0
            self.made.append(trace_of(self.capture, file, self.out, steps=steps))

    def add_traces(
        self, raws: Sequence[Path], step: re.Pattern[bytes], whose: Callable[[str, Looked], Whose]
    ) -> None:
        """Make a trace of each of the engine's files."""
        self.made += [
            artifact_of(self.capture, raw, self.out, step=step, whose=whose, found=self.found)
            for raw in raws
        ]

    def summary(
        self, engine: str, missing: Sequence[str], more: Sequence[str], *, is_whole: bool
    ) -> Artifact:
        """Write the summary: what was asked, the answers, and what is *missing*."""
        name = f"{self.capture.stem}_{engine}.json"
        content = {**self.notes, "traces": self.found, "missing": missing}
        text = json.dumps(content, indent=1, default=str) + "\n"
        (self.out / name).write_text(text, encoding="utf-8")
        note = "; ".join([*missing, *more])
        return Artifact(name, "files", "json", "whole" if is_whole else "partial", note)


def refused(notes: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Name the processes that recorded nothing, and those that were idle."""
    answers = notes.get("answers") or {}
    lines: tuple[list[str], list[str]] = [], []
    for one in (one for part in answers.values() for one in part if one["state"] in _BAD):
        lines[one.get("why") == IDLE].append(f"{named(one)}: {one.get('why')}")
    return lines


def named(answer: Mapping[str, Any]) -> str:
    """Name the process of an answer."""
    return f"worker {answer.get('worker', '?')}"
