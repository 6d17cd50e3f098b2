"""Turns traces of an engine's own profiler into artifacts on the clock of their host."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact
from rlprof_torch.kineto import finish
from rlprof_traces import DamagedError, Unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlprof import Capture, Target

_PID = re.compile(rb'"cat": "(?:cpu_op|user_annotation)"[^{}]*?"pid": (\d+)')
_OWN_RANK = re.compile(rb'"distributedInfo": \{[^{}]*?"rank": (\d+)')
_BLOCK = 4 << 20
_LONGEST = 300
"""Bytes in the longest name of an engine step."""


@attrs.frozen
class Looked:
    """Metadata read from a raw trace."""

    steps: int
    """Number of engine steps in it."""
    pid: int
    rank: int | None


@attrs.frozen
class Whose:
    """The engine process that a trace belongs to."""

    what: str
    """Its name in the artifact's file name: `worker0`."""
    target: Target
    entry: dict[str, Any]
    """Its entry in the summary of the capture."""
    is_idle: bool = False
    """Whether it should have engine steps, but has none."""

    @property
    def part(self) -> str:
        """The name in words: `worker 0`."""
        return re.sub(r"(?<=[a-z])(?=\d)", " ", self.what.replace("_", " "))


def header(capture: Capture, target: Target) -> dict[str, Any]:
    """Return the header of a trace: the value of its first key."""
    return {**capture.header, "target": attrs.asdict(target)}


def artifact_of(
    capture: Capture,
    raw: Path,
    out: Path,
    *,
    step: re.Pattern[bytes],
    whose: Callable[[str, Looked], Whose],
    found: list[dict[str, Any]],
) -> Artifact:
    """Make a trace of one file; keep the file unchanged if it is not a trace.

    *step* matches the name of an engine step. *whose* gets the file's name and metadata. Notes
    about the file go into *found*.
    """
    name = f"{capture.stem}_{raw.name}"
    if not raw.name.endswith((".trace.json", ".trace.json.gz")):
        return _kept(raw, out, name)
    try:
        one = whose(raw.name, looked := _looked(raw, step))
        made = f"{capture.stem}_{one.what}_enginepid{looked.pid}.pt.trace.json.gz"
        done = finish(raw, out / made, header=header(capture, one.target))
    except ValueError as exc:
        shutil.copyfile(raw, out / name)
        why = str(exc).replace(str(raw.parent), "").strip("/")
        return Artifact(name, "files", "chrome-trace", "partial", f"cannot be read: {why}")
    found.append({"file": raw.name, "pid": looked.pid, "iterations": looked.steps, **one.entry})
    note = "idle: the engine had no step in the window" if one.is_idle else ""
    if done.truncated:
        note = "the engine's trace was cut; its complete events are kept"
    is_cut = bool(done.truncated or done.dropped)
    return Artifact(
        made,
        "trace",
        "chrome-trace",
        "partial" if is_cut else "whole",
        note,
        events=done.events,
        text_size=done.text_size,
        part=one.part,
    )


def _kept(raw: Path, out: Path, name: str) -> Artifact:
    if raw.is_dir():  # torch_npu writes a folder per process
        shutil.copytree(raw, out / name)
        files = [path for path in (out / name).rglob("*") if path.is_file()]
        inner = max(files, key=lambda path: path.stat().st_size, default=None)
        if inner is not None:
            return Artifact(str(inner.relative_to(out)), "files", "ascend", note=f"in {name}")
    shutil.copyfile(raw, out / name)
    if not raw.stat().st_size:
        return Artifact(name, "files", "text", "partial", "is empty")
    return Artifact(name, "files", "pickle" if raw.suffix == ".pickle" else "text")


def _looked(file: Path, step: re.Pattern[bytes]) -> Looked:
    """Count the engine steps in a raw trace, and find its process and its rank."""
    steps, pid, rest = 0, 0, b""
    rank: int | None = None
    for block in _blocks(file):
        text = rest + block
        steps += sum(one.end() > len(rest) for one in step.finditer(text))
        if not pid and (mine := _PID.search(text)):
            pid = int(mine[1])
        if rank is None and (own := _OWN_RANK.search(text)):
            rank = int(own[1])
        rest = text[-_LONGEST:]
    return Looked(steps, pid, rank)


def _blocks(file: Path) -> Iterator[bytes]:
    """Yield the text of a trace, packed or not, as far as it can be had."""
    with file.open("rb") as stream, suppress(EOFError, DamagedError):
        text = Unpacked(stream)
        while block := text.read(_BLOCK):
            yield block
