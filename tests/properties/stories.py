"""Manifests and spans of several processes, line by line, as their sessions write them."""

from typing import Any

import attrs
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import Here, as_line, span_record
from rlprof.types import Artifact, Target, Window
from tests.core import test_reader
from tests.core.test_reader import Folder, beginning

WINDOWS = [Window(2, 3, "rollout"), Window(2, 3, "update"), Window(2, 3, "update", 1), Window(5, 8)]
DEAD = attrs.evolve(Here.now(), started="never")
"""A process that has died: its number now belongs to one that started at another time."""


@attrs.frozen
class Story:
    """The lines of one process."""

    name: str
    manifest: tuple[bytes, ...]
    spans: tuple[bytes, ...]


def event(name: str, mono: int = 500, **fields: Any) -> bytes:
    return as_line(test_reader.event(name, mono, **fields))


def head(rank: int) -> tuple[bytes, ...]:
    """Make the first lines of a manifest."""
    return tuple(map(as_line, beginning(Target("actor", rank, 3), DEAD)))


@st.composite
def captures(draw, process: str, window: Window) -> list[bytes]:
    """Draw the lines about one capture, up to the point where its process may have died."""
    key = {"window": attrs.asdict(window), "tool": draw(st.sampled_from(["fake", "torch"]))}
    lines = [event("opened", 1000, **key, scratch="/s", asked={"a": 1})]
    if draw(st.booleans()):
        lines.append(event("started", **key, seconds=0.5, applied={"a": 1}, unsupported={}))
    else:
        lines.append(event("failed", **key, hook="start", error="RuntimeError: no"))
    lines.append(event("closed", 2000, **key, reason="end", seconds=0.25))
    statuses = st.sampled_from(["whole", "whole", "partial"])
    for number in range(draw(st.integers(0, 3))):
        path = f"{process}/{window.folder}/{key['tool']}-{number}.json"
        made = Artifact(path, "trace", "chrome-trace", draw(statuses), size=9)
        lines.append(event("artifact", **key, artifact=attrs.asdict(made)))
    if draw(st.booleans()):
        lines.append(event("failed", **key, hook="export", error="RuntimeError: no"))
    return [*lines, event("exported", 3000, **key, seconds=1.5)]


@st.composite
def merges(draw, parts: list[list[bytes]]) -> list[bytes]:
    """Draw one order of all lines that keeps the order within each part."""
    waiting = [list(part) for part in parts if part]
    merged = []
    while waiting:
        part = draw(st.sampled_from(waiting)) if len(waiting) > 1 else waiting[0]
        merged.append(part.pop(0))
        waiting = [part for part in waiting if part]
    return merged


@st.composite
def stories(draw) -> list[Story]:
    """Draw the manifests and spans of one to three processes of a run."""
    told = []
    for rank in range(draw(st.integers(1, 3))):
        name = f"actor-{rank}"
        windows = draw(st.lists(st.sampled_from(WINDOWS), max_size=3, unique=True))
        parts = [draw(captures(name, window)) for window in windows]
        parts.append([event("skipped", step=9, reason="no phase")] * draw(st.integers(0, 1)))
        tail = [event("ended")] * draw(st.integers(0, 1))
        spans = [
            as_line(span_record(("step", f"step {n}", 200 + n, 300 + n, n, 7, n, None, 0, None)))
            for n in range(draw(st.integers(0, 3)))
        ]
        told.append(Story(name, (*head(rank), *draw(merges(parts)), *tail), tuple(spans)))
    return told


class RunOf:
    """A run folder whose files the tests write again and again."""

    def __init__(self, path):
        self.path = Folder(path).path
        (path / "spans").mkdir()

    def write(self, story: Story, manifest: bytes | None = None, spans: bytes | None = None):
        """Write the files of one process, whole by default."""
        manifest = b"".join(story.manifest) if manifest is None else manifest
        spans = b"".join(story.spans) if spans is None else spans
        (self.path / "manifest" / f"{story.name}.jsonl").write_bytes(manifest)
        (self.path / "spans" / f"{story.name}.jsonl").write_bytes(spans)

    def clear(self) -> None:
        for file in self.path.glob("*/*.jsonl"):
            file.unlink()

    def read(self, told: list[Story]) -> rlprof.Run:
        """Write the files of these processes only, and read the run."""
        self.clear()
        for story in told:
            self.write(story)
        return rlprof.read(self.path)


def claims(run: rlprof.Run) -> set[tuple[Any, ...]]:
    """Return the facts of *run*; a state is a fact only if it promises data."""
    told: set[tuple[Any, ...]] = {("skipped", s.target.rank, s.step, s.reason) for s in run.skipped}
    for process in run.processes:
        told |= {("process", process.name), *(("clock", process.name, c) for c in process.clocks)}
        told |= {("ended", process.name)} if process.state == "ended" else set()
    for item in run.captures:
        key = (item.process, item.window, item.tool)
        told |= {("opened", key), ("whole", key) if item.state == "whole" else ("opened", key)}
        told |= {("data", key)} if item.state in ("whole", "partial") else set()
        told |= {("started", key)} if item.start_s is not None else set()
        told |= {("closed", key)} if item.closed_ns is not None else set()
        told |= {("artifact", key, artifact.path) for artifact in item.artifacts}
        told |= {("note", key, note) for note in item.notes}
    told |= {("span", span.process, span.id, span.start_ns, span.name) for span in run.spans()}
    return told
