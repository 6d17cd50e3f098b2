"""What recording with Nsight Systems costs, and what it costs to lay a report on the wall clock.

`.envs/test/bin/python bench/nsys.py`: Debian's Nsight Systems from `make env-nsys`. One process
under the launcher records windows in turn by rlprof's tool and by the two commands of nsys alone.
What a range costs is measured there, and in processes with and without nsys that take turns. Then
the report of a million ranges is converted, by nsys' own exports and by ours, each in a process of
its own, whose memory is its resident memory at its peak.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from _measure import machine, verdict

from rlprof_nsys._arguments import LAUNCHER, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE = Path(__file__).parent
NSYS = _HERE.parent / ".envs/nsys/bin/nsys"
PAIRS = 9
"""Of processes with and without nsys, for the cost of a range differs from process to process."""
MOST_MB = 400
"""Of memory, to make a trace of a million ranges."""
_CONVERT = """
import sys
from pathlib import Path
from rlprof_nsys._trace import write_trace
print(write_trace(Path(sys.argv[1]), Path(sys.argv[2]), {}).text_size)
"""


@attrs.frozen
class Cost:
    """What one conversion has taken."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    said: str


def timed(argv: Sequence[str]) -> Cost:
    """Run *argv* to its end."""
    with tempfile.TemporaryFile("w+") as out:
        begin = time.perf_counter()
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().strip()
    assert process.returncode == 0, said
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said)


def recorded(home: Path) -> dict[str, Any]:
    """Run the program bare and under the launcher; return what it found."""
    launcher = [*LAUNCHER, Asked("bench", str(NSYS), ("nvtx",)).text()]
    ranges: dict[str, list[float]] = {"none": [], "idle": []}
    for _ in range(PAIRS):
        ranges["none"].append(_told(home, [], "range")["range"])
        ranges["idle"].append(_told(home, launcher, "range")["range"])
    found = _told(home, launcher, "windows")
    return found | {name: statistics.median(ns) for name, ns in ranges.items()}


def _told(home: Path, prefix: Sequence[str], what: str) -> dict[str, Any]:
    file = home / f"{what}.json"
    program = [sys.executable, str(_HERE / "_nsys_program.py"), str(file), what]
    subprocess.run([*prefix, *program], check=True)
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def show_recording(found: dict[str, Any]) -> None:
    print("  a range (push and pop), ns:")
    for name, key in (
        ("without nsys", "none"), ("under nsys launch, no window", "idle"),
        ("in a window", "collecting"), ("after the last window", "after"),
    ):  # fmt: skip
        print(f"    {name:<34}{found[key]:>8.0f}")
    print(f"  a window of 1,000 ranges, s, median (most) of {len(found['ours'])}:")
    for name, key in (("rlprof", "ours"), ("nsys start, nsys stop alone", "bare")):
        starts, stops = zip(*found[key], strict=True)
        print(f"    {name:<30} start {_middle(starts)}   stop {_middle(stops)}")
    print(
        f"  a window of 1,000,000 ranges: {found['many_s']:.1f} s to make them, "
        f"stop {found['many_stop_s']:.1f} s"
    )


def _middle(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({max(seconds):.2f})"


def convert(home: Path) -> bool:
    """Convert the report of a million ranges, by nsys and by us; return whether the limit holds."""
    report, database = home / "many/report.nsys-rep", home / "many.sqlite"
    text, trace = home / "many.json", home / "many.trace.json.gz"
    export = [str(NSYS), "export", "--quiet=true"]
    ours = [sys.executable, "-c", _CONVERT, str(database), str(trace)]
    sqlite = timed([*export, "--type=sqlite", f"--output={database}", str(report)])
    theirs = timed([*export, "--type=json", f"--output={text}", str(report)])
    made = timed(ours)
    json_mb, rows_mb = int(made.said) / 1e6, database.stat().st_size / 1e6
    sizes = {"nsys export, SQLite": (sqlite, rows_mb, rows_mb),
             "nsys export, its own JSON": (theirs, text.stat().st_size / 1e6,
                                           text.stat().st_size / 1e6),
             "rlprof, SQLite to chrome-trace": (made, json_mb, trace.stat().st_size / 1e6),
             }  # fmt: skip
    print(f"  a report of 1,000,000 ranges, {report.stat().st_size / 1e6:.1f} MB:")
    print(f"    {'':<32}{'wall s':>8}{'CPU s':>8}{'text MB':>9}{'on disk':>9}{'memory':>8}")
    for name, (cost, mb, disk) in sizes.items():
        print(
            f"    {name:<32}{cost.wall_s:>8.1f}{cost.cpu_s:>8.1f}{mb:>9.1f}{disk:>9.1f}"
            f"{cost.peak_mb:>8.0f}"
        )
    print(
        f"  SQLite to chrome-trace: {rows_mb / made.wall_s:.1f} MB/s of SQLite in, "
        f"{json_mb / made.wall_s:.1f} MB/s of JSON out; per CPU second "
        f"{rows_mb / made.cpu_s:.1f} and {json_mb / made.cpu_s:.1f}"
    )
    return verdict(
        "memory of SQLite to chrome-trace, 1,000,000 ranges", made.peak_mb, MOST_MB, "MB"
    )


def main() -> int:
    if not NSYS.exists():
        print("nsys: no .envs/nsys here; `make env-nsys`")
        return 1
    version = subprocess.run([NSYS, "--version"], capture_output=True, text=True, check=True).stdout
    load = os.getloadavg()[0]
    print(f"nsys: {machine()}, {version.split()[-1]}, load {load:.1f}; bench/nsys.py", flush=True)
    with tempfile.TemporaryDirectory() as home:
        show_recording(recorded(Path(home)))
        return 0 if convert(Path(home)) else 1


if __name__ == "__main__":
    sys.exit(main())
