"""What a report of spans alone costs, and how often it names the cause that was planted.

`.envs/test/bin/python bench/report.py [causes] [sizes] [--seeds 10]`: made-up runs of a fleet and
of torchrun's ranks, with one cause or two planted in each; then, of large runs, CPU and memory of
`rlprof export --to report` in a fresh process, how large the page is and when Chromium shows it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from _measure import machine, verdict

sys.path.insert(0, str(Path(__file__).parent.parent))
import rlprof
from rlprof_report import analyse
from tests.report.made_runs import make_fleet, make_torchrun
from tests.report.page.chromium import looked_at

FLEET = ("none", "straggler", "tail", "tool", "sync", "replica", "gap")
"""Of the kinds the limit counts: 65 of 70."""
MORE = ("gc", "data")
TORCHRUN = ("none", "straggler", "data", "gc", "gap")
TWO = (
    ("straggler", "sync"), ("tool", "sync"), ("tail", "gap"), ("replica", "gc"), ("data", "replica")
)  # fmt: skip
_MEASURED = """
import re, sys, time
import rlprof
from pathlib import Path
from rlprof_report import Report
began = time.process_time()
out = Path(sys.argv[1], "exports")
out.mkdir()
Report().render(rlprof.read(sys.argv[1]), out, {})
peak = re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())  # ours since exec
print(time.process_time() - began, int(peak[1]) / 1024)
"""


def first_of(path: Path) -> str:
    """Return the cause of the first finding."""
    findings = analyse(rlprof.read(path)).findings
    return findings[0].cause if findings else "none"


def fleet(path: Path, causes: tuple[str, ...], seed: int, *, rare: float = 1.0) -> Path:
    """Make a fleet whose size goes with the seed."""
    return make_fleet(
        path, causes, seed=seed, ranks=8 * (1 + seed % 3), replicas=2 + seed % 4,
        trajectories=96 * (1 + seed % 3), rare=rare,
    )  # fmt: skip


def count(name: str, cause: str, found: Counter[str]) -> int:
    """Print one row; return how many were right."""
    seen = ", ".join(f"{one} {times}" for one, times in found.most_common())
    print(f"  {name:<34} {found[cause]:3} of {found.total()} ({seen})")
    return found[cause]


def causes(folder: Path, seeds: int) -> bool:
    """Plant causes and count; return whether enough were found."""
    right, holds = 0, True
    for cause in (*FLEET, *MORE):
        own = () if cause == "none" else (cause,)
        found = Counter(
            first_of(fleet(folder / f"{cause}-{seed}", own, seed)) for seed in range(seeds)
        )
        good = count(f"fleet, {cause}", cause, found)
        right += good if cause in FLEET else 0
        holds &= cause != "none" or good == seeds
    for cause in TORCHRUN:
        own = () if cause == "none" else (cause,)
        found = Counter(
            first_of(make_torchrun(folder / f"torchrun-{cause}-{seed}", own, seed=seed))
            for seed in range(seeds)
        )
        holds &= count(f"torchrun, {cause}", cause, found) >= 0.9 * seeds
    for cause in ("tool", "gc", "data", "tail"):
        found = Counter(
            first_of(fleet(folder / f"rare-{cause}-{seed}", (cause,), seed, rare=0.3))
            for seed in range(seeds)
        )
        count(f"fleet, {cause} in 30 % of steps", cause, found)
    both = 0
    for pair in TWO:
        for seed in range(seeds):
            path = fleet(folder / f"{'-'.join(pair)}-{seed}", pair, seed)
            both += set(pair) <= {one.cause for one in analyse(rlprof.read(path)).findings}
    total = len(TWO) * seeds
    print(f"  {'fleet, two causes at once':<34} {both:3} of {total} (both are findings)")
    wrong = len(FLEET) * seeds - right
    return verdict("wrong first findings of 70", wrong * 10 / seeds, 5, "") and holds


def sizes(folder: Path) -> bool:
    """Measure large runs; return whether they are read fast enough."""
    holds = True
    wide = make_fleet(folder / "wide", ranks=1000, replicas=4, trajectories=8192)
    long = make_fleet(folder / "long", ranks=2, trajectories=8, steps=10_000)
    for name, path in (("1,000 ranks, 10 x 8,192", wide), ("10,000 steps of 8", long)):
        command = [sys.executable, "-c", _MEASURED, str(path)]
        took = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        print(f"  {name}: {float(took[0]):.1f} CPU s, {float(took[1]):.0f} MB")
        if path is wide:
            holds &= verdict(f"{name}: CPU", float(took[0]), 6, "s")
            holds &= verdict(f"{name}: memory", float(took[1]), 300, "MB")
        page = path / "exports/report.html"
        size = page.stat().st_size / 1e6
        holds &= verdict(f"{name}: page", size, 1 if path is wide else 2, "MB")
        (shown,) = looked_at([{"page": str(page)}])
        holds &= verdict(f"{name}: shown after", shown["ready_s"], 2, "s")
    return holds


def main() -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["causes", "sizes"])
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    print(machine())
    holds = True
    with tempfile.TemporaryDirectory() as folder:
        if "causes" in args.what:
            holds &= causes(Path(folder), args.seeds)
        if "sizes" in args.what:
            holds &= sizes(Path(folder))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
