"""Traces of N ranks, with known clock errors, as files: what merging is measured on.

Each rank has a base of its own (odd ones were started a quarter of a year earlier, so Kineto's is
that of the quarter before), and a wall clock that is wrong by a known time. All leave one barrier
at one true instant. A set of ranks lies in its folder three times over: `raw/rank-0.json`,
`gz/bench-TP-0.trace.json.gz`, which is how SGLang names them, and `run/a-run`, a run folder of
rlprof's that knows the clock errors. `.envs/test/bin/python bench/_kineto_ranks.py DIR 4x50`
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import BinaryIO

import attrs
from _kineto_events import LAYOUTS, PID, metadata, recorded, us

from rlprof.rundir import Here, Journal, as_line, join
from rlprof.types import Artifact, Clock, Target, Window

QUARTER_NS = 90 * 24 * 3600 * 10**9
BASE_NS = 1_790_000_000 * 10**9
ERROR_NS = 1_500_007
"""How much more each rank's clock is ahead of the true time than that of the rank before."""
_WINDOW = Window(7, 8, "update_actor")
_LEVEL = 4
"""Of compression; that of our own traces."""
_BATCH = 1000
"""So many events are written at a time, about."""


@attrs.frozen
class Rank:
    """What is true of a rank, and what its file says."""

    rank: int
    base_ns: int
    error_ns: int
    """How far its wall clock is ahead of the true time."""
    events: int = 0
    """Without those that only name processes and threads."""
    bytes: int = 0
    """Of the raw file."""

    @property
    def shift_ns(self) -> int:
        """Return what is added to times after `BASE_NS` to get those in its file."""
        return BASE_NS - self.base_ns + self.error_ns


def make(folder: Path, size: int, megabytes: float, layout: str = "new") -> list[Rank]:
    """Write a set of *size* ranks into *folder*, or find it there; return what is true of it."""
    truth = folder / "truth.json"
    if truth.exists():
        return [Rank(**known) for known in json.loads(truth.read_text())]
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
    for name in ("raw", "gz"):
        (folder / name).mkdir(parents=True)
    header: dict[str, object] = {"config": {}, "expected": {}}
    run = join(folder / "run", Target("driver"), header, env={"RLPROF_RUN_ID": "a-run"}).path
    ranks = []
    for number in range(size):
        base_ns = BASE_NS - number % 2 * QUARTER_NS
        rank = Rank(number, base_ns, number * ERROR_NS)
        target = Target("actor", number, size)
        trace = run / f"{_name(target)}.json.gz"
        files = (
            folder / "raw" / f"rank-{number}.json",
            folder / "gz" / f"bench-TP-{number}.trace.json.gz",
            trace,
        )
        ranks.append(_write(rank, target, files, int(megabytes * 1e6), layout))
        _capture(run, target, trace)
    truth.write_text(json.dumps([attrs.asdict(rank) for rank in ranks]))
    return ranks


def _name(target: Target) -> str:
    return f"actor-{target.rank}-node-{target.rank}-{PID}"


def _capture(run: Path, target: Target, trace: Path) -> None:
    """Write down in *run* a process that has recorded one *trace*."""
    host, name = f"node-{target.rank}", _name(target)
    text_size = int.from_bytes(trace.read_bytes()[-4:], "little")  # of a gzip of one member
    size = trace.stat().st_size
    artifact = Artifact(trace.name, "trace", "any", text_size=text_size, size=size)
    booted_ns = BASE_NS - 10**15
    journal = Journal(run / "manifest" / f"{name}.jsonl")

    def tell(event: str, at_ns: int, **fields: object) -> None:
        journal.write([as_line({"event": event, "mono": at_ns - booted_ns, **fields})])

    here = Here(host, f"boot-{host}", "pid:[1]", PID, "1")
    begun, over = BASE_NS, BASE_NS + 60 * 10**9
    tell("process", begun, target=attrs.asdict(target), here=attrs.asdict(here), versions={})
    for at_ns in (begun, over):
        tell("clock", at_ns, **attrs.asdict(Clock(at_ns, at_ns - booted_ns, 150)))
    key = {"window": attrs.asdict(_WINDOW), "tool": "torch"}
    tell("opened", begun, **key, scratch="", asked={})
    tell("closed", over, **key, reason="end", seconds=0.0)
    tell("artifact", over, **key, artifact=attrs.asdict(artifact))
    tell("exported", over, **key, seconds=0.0)
    tell("ended", over)


def _write(
    rank: Rank, target: Target, files: tuple[Path, Path, Path], least: int, layout: str
) -> Rank:
    """Write the same events as a raw file of Kineto's, the same gzipped, and rlprof's own trace."""
    form = LAYOUTS[layout]
    kineto, ours = _frames(rank, target, layout)
    events, written, over_ns = 0, 0, 0  # without the mark at the end
    raw, loose, trace = files
    with raw.open("wb") as one, _Gzip(loose) as two, _Gzip(trace) as three:
        outs = ((one, kineto), (two, kineto), (three, ours))

        def put(text: str) -> int:
            data = text.encode()
            for out, _ in outs:
                out.write(data)
            return len(data)

        for out, (head, _) in outs:
            out.write(head.encode())
        put(",".join(metadata(form, rank.shift_ns)))
        batch: list[str] = []
        for at_ns, operator in recorded(form, rank.rank, rank.shift_ns):
            over_ns = at_ns
            events += len(operator)
            batch += operator
            if len(batch) > _BATCH:
                written += put("," + ",".join(batch))
                batch.clear()
                if written > least:
                    break
        put("," + form.mark % ("Record Window End", us(over_ns + rank.shift_ns)))
        for out, (_, tail) in outs:
            out.write(tail.encode())
    return attrs.evolve(rank, events=events, bytes=raw.stat().st_size)


def _frames(rank: Rank, target: Target, layout: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return what stands before and after the events: in Kineto's file, and in rlprof's."""
    about = {
        "run": "a-run", "target": attrs.asdict(target), "window": attrs.asdict(_WINDOW),
        "tool": "torch", "epoch_ns": rank.base_ns - rank.error_ns, "error_ns": 2_000,
        "clock": "made up",
    }  # fmt: skip
    world = {"backend": "nccl", "rank": rank.rank, "world_size": target.world_size}
    head = [
        '"schemaVersion": 1',
        '"deviceProperties": []',
        f'"distributedInfo": {json.dumps(world)}',
        '"displayTimeUnit": "ms"',
    ]
    tail = [f'"traceName": "rank-{rank.rank}.json"']
    (head if layout == "new" else tail).append(f'"baseTimeNanoseconds": {rank.base_ns}')
    indented = "".join(f"    {member},\n" for member in head)
    kineto = f' {{\n{indented}    "traceEvents": [\n    ', f"\n  ],{', '.join(tail)} }}"
    first = f'"rlprof": {json.dumps(about)}'
    ours = (
        "{\n" + ",\n".join([first, *head, '"traceEvents": [']),
        "\n" + ",\n".join(["]", *tail, '"rlprof_counts": {"truncated": false}']) + "\n}\n",
    )
    return kineto, ours


class _Gzip:
    """A file that is compressed as it is written."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._squeeze = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)

    def write(self, data: bytes) -> None:
        self._file.write(self._squeeze.compress(data))

    def __enter__(self) -> _Gzip:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.write(self._squeeze.flush())
        self._file.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", help="ranks and megabytes of each: 4x50")
    parser.add_argument("--layout", choices=LAYOUTS, default="new", help="of Kineto's files")
    args = parser.parse_args()
    size, megabytes = args.size.split("x")
    ranks = make(args.folder, int(size), float(megabytes), args.layout)
    print(f"{sum(r.events for r in ranks):,} events, {sum(r.bytes for r in ranks):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
