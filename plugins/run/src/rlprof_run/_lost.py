"""Span files that are cut, empty or gone, of processes that no longer write."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rlprof_run._run import Attached, Process

CUT, EMPTY, GONE = "ends in the middle of a line", "is empty", "is not there"


def lost_spans(
    path: Path, processes: Sequence[Process], attached: Iterable[Attached]
) -> dict[str, str]:
    """Map the damaged span files of the run at *path*, `spans/…`, to their faults.

    Members of a fleet and workers of an engine need not write any. Of members the driver does, into
    `spans/+…-<driver>.jsonl`; a driver that ended in order may have seen no call of theirs.
    """
    there = {file.name for file in path.glob("spans/*.jsonl")}
    over = {one.name: one.target for one in processes if one.state != "running"}
    died = {one.name for one in processes if one.state == "died"}
    found = {}
    for name in sorted(there):
        writer = name.removesuffix(".jsonl")
        if name.startswith("+"):
            writer = writer.partition("-")[2]
        if writer in over and (why := _damage(path / "spans" / name)):
            found[f"spans/{name}"] = why
    posts: dict[tuple[str, int], list[str]] = {}
    for one in attached:
        posts.setdefault((one.target.role, one.target.rank), []).append(one.process)
    writing = {over[name].role for name in over if f"{name}.jsonl" in there}
    for name, target in over.items():
        by = posts.get((target.role, target.rank), ())  # a member attaches its own engine, too
        driver = next((one for one in by if one != name), name)
        if f"{name}.jsonl" in there or target.worker is not None or driver not in over:
            continue
        if driver == name and (
            target.role in writing or (there and any(name in by for by in posts.values()))
        ):
            found[f"spans/{name}.jsonl"] = GONE
        is_written = any(one.endswith(f"-{driver}.jsonl") for one in there)
        if driver != name and driver in died and there and not is_written:
            found[f"spans/+…-{driver}.jsonl"] = GONE
    return found


def _damage(file: Path) -> str:
    with suppress(OSError), open_regular(file) as stream:
        if not stream.seek(0, os.SEEK_END):
            return EMPTY
        stream.seek(-1, os.SEEK_END)
        return "" if stream.read() == b"\n" else CUT
    return ""
