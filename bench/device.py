"""Device figures of large traces, ours and HolisticTraceAnalysis' side by side.

`make env-test env-hta; .envs/test/bin/python bench/device.py [2x64|8x128|1x1024] [--gz]`: ranks of
so many MB each, made of a real trace of two A100s whose events are repeated later in time, in the
layout of today's Kineto. Each tool has a process of its own. CPU seconds are those of the reading
and the figures, with those of child processes, without Python's start and imports; memory is that
of the largest process. RLPROF_BENCH_DIR keeps the traces.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import machine, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
REAL = HERE.parent / "tests/data/gpu_2ranks_rank0.json.gz"
HTA = HERE.parent / ".envs/hta/bin/python"
LEAST_RATE, MOST_MB = 120, 300
"""MB of JSON per CPU second, and MB of memory."""
FASTER, LEANER = 8, 5
"""Times that ours must be better than HTA."""
_SHIFT = 10_000_000
_ORDER = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")


def make(file: Path, megabytes: float) -> None:
    """Write a trace of so many MB."""
    opener = gzip.open if file.suffix == ".gz" else open
    with gzip.open(REAL) as packed:
        events = [event for event in json.load(packed)["traceEvents"] if event["ph"] == "X"]
    first = min(event["ts"] for event in events)
    span = max(event["ts"] + event["dur"] for event in events) - first + 1000
    with opener(file, "wb") as out:
        text = '{\n  "schemaVersion": 1,\n  "rlprof": {"epoch_ns": 0},\n  "traceEvents": ['
        left, begin = megabytes * 1e6, "\n  "
        for turn in range(1 << 30):
            for piece in _moved(events, turn * span - first, turn * _SHIFT):
                text += begin + piece
                begin = ",\n  "
            out.write(text.encode())
            left -= len(text)
            text = ""
            if left <= 0:
                break
        out.write(b"\n  ]\n}\n")


def _moved(events: list[dict[str, Any]], by: int, ids: int) -> Iterator[str]:
    for event in events:
        args = {**event.get("args", {})}
        for name in ("correlation", "External id"):
            if name in args:
                args[name] += ids
        moved = {name: event[name] for name in _ORDER if name in event}
        moved |= {"ts": event["ts"] + by, "args": args}
        lines = (f'    "{name}": {json.dumps(value)}' for name, value in moved.items())
        yield "{\n" + ",\n".join(lines) + "\n  }"


def ours(files: list[str]) -> None:
    """Compute the figures of *files*, and print what that took."""
    from rlprof_report.device._trace import figures_of

    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    found = [figures_of(Path(file)) for file in files]
    cpu_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    events = sum(one.device_events + one.host_events for one in found)
    print(json.dumps({"cpu_s": cpu_s, "peak_mb": peak_mb, "events": events}))


def run(argv: list[str]) -> dict[str, Any]:
    """Run a tool in a process of its own."""
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def measure(files: list[Path], megabytes: float) -> list[bool]:
    """Compare both on *files*, and judge ours."""
    names = [str(file) for file in files]
    mine = run([sys.executable, __file__, "--ours", *names])
    rate = megabytes / mine["cpu_s"]
    print(f"  {len(files)} traces, {megabytes:,.0f} MB of JSON, {mine['events']:,} events used")
    print(f"  ours {mine['cpu_s']:.1f} CPU s, {rate:.0f} MB/CPU s, {mine['peak_mb']:.0f} MB")
    holds = [
        verdict("seconds of CPU for 120 MB", LEAST_RATE / rate, 1, "s"),
        verdict("peak memory", mine["peak_mb"], MOST_MB, "MB"),
    ]
    if not HTA.exists():
        print("  HTA not measured: make env-hta")
        return holds
    theirs = run([str(HTA), str(HERE / "_hta.py"), *names])
    rate = megabytes / theirs["cpu_s"]
    print(f"  HTA {theirs['cpu_s']:.1f} CPU s, {rate:.0f} MB/CPU s, {theirs['peak_mb']:.0f} MB")
    return [
        *holds,
        verdict("CPU over HTA's", mine["cpu_s"] / theirs["cpu_s"], 1 / FASTER, ""),
        verdict("memory over HTA's", mine["peak_mb"] / theirs["peak_mb"], 1 / LEANER, ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["2x64"], metavar="RANKSxMB")
    parser.add_argument("--gz", action="store_true", help="gzipped traces")
    parser.add_argument("--ours", nargs="+", metavar="TRACE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ours:
        ours(args.ours)
        return 0
    print(f"device figures: {machine()}")
    kept = os.environ.get("RLPROF_BENCH_DIR")
    work = Path(kept or tempfile.mkdtemp())
    holds = []
    try:
        for size in args.sizes:
            count, megabytes = size.split("x")
            folder = work / f"device-{size}{'-gz' if args.gz else ''}"
            folder.mkdir(exist_ok=True)
            first = folder / f"rank0.json{'.gz' if args.gz else ''}"
            if not first.exists():
                make(first, float(megabytes))
            files = [first.with_name(first.name.replace("0", str(n), 1)) for n in range(int(count))]
            for file in files[1:]:
                file.unlink(missing_ok=True)
                file.hardlink_to(first)
            holds += measure(files, float(megabytes) * int(count))
    finally:
        if not kept:
            shutil.rmtree(work, ignore_errors=True)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
