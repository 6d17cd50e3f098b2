"""From samples to a trace: what is at the same depth in two samples running is one slice."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof import Capture


@attrs.define
class Samples:
    """What a file of samples says."""

    epoch_ns: int
    error_ns: int
    threads: dict[str, tuple[int, str]] = attrs.field(factory=dict)
    """Thread → its number for the system, and its name."""
    stacks: list[tuple[int, dict[str, list[str]]]] = attrs.field(factory=list)
    phases: list[tuple[str, str, int, int]] = attrs.field(factory=list)
    is_whole: bool = False


def read_samples(file: Path) -> Samples:
    """Read what can be read of *file*; raise CaptureError where that is nothing."""
    lines = list(_lines(file))
    if not lines or "epoch_ns" not in lines[0]:
        raise CaptureError(f"{file.name} holds no sample; the process ended as the window began")
    samples = Samples(lines[0]["epoch_ns"], lines[0]["error_ns"])
    for line in lines[1:]:
        if "at" in line:
            samples.stacks.append((line["at"], line["stacks"]))
        elif "new" in line:
            samples.threads[str(line["new"])] = (line["native"] or line["new"], line["name"])
        elif "phase" in line:
            whole = line["phase"].encode("utf-8", "replace").decode()  # no half characters
            samples.phases.append((str(line["thread"]), whole, line["from"], line["to"]))
        samples.is_whole = "end" in line
    return samples


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text("ascii")
    except FileNotFoundError:
        raise CaptureError(f"{file.name} is not there; nothing was recorded") from None
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # cut by a crash; it is the last
            return


def write_trace(file: Path, samples: Samples, capture: Capture) -> int:
    """Write the trace; return how many events are in it."""
    header = {
        **capture.header,
        "epoch_ns": samples.epoch_ns,
        "error_ns": samples.error_ns,
    }
    events = list(_events(samples, capture.pid))
    with gzip.open(file, "wt", encoding="utf-8") as stream:
        json.dump({"rlprof": header, "traceEvents": events}, stream, allow_nan=False)
    return len(events)


def _events(samples: Samples, pid: int) -> Iterator[dict[str, Any]]:
    for tid, name in samples.threads.values():
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
    slices = [*samples.phases]
    for thread in samples.threads:
        slices += _merged(thread, samples.stacks)
    for thread, name, began, ended in slices:
        tid = samples.threads.get(thread, (0, ""))[0]
        yield {
            "ph": "X", "cat": "stacks", "name": name, "pid": pid, "tid": tid,
            "ts": began / 1000, "dur": (ended - began) / 1000,
        }  # fmt: skip


def _merged(
    thread: str, stacks: list[tuple[int, dict[str, list[str]]]]
) -> Iterator[tuple[str, str, int, int]]:
    """Go through the samples of one thread; a frame is a slice from its first to its last."""
    running: list[tuple[str, int]] = []
    at = 0
    for at, sampled in stacks:
        stack = sampled.get(thread, [])
        same = 0
        while same < min(len(stack), len(running)) and stack[same] == running[same][0]:
            same += 1
        yield from ((thread, name, began, at) for name, began in running[same:])
        running[same:] = [(name, at) for name in stack[same:]]
    yield from ((thread, name, began, at) for name, began in running)
