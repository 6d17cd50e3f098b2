"""What HolisticTraceAnalysis 0.5.0 says of traces, and what it takes.

`.envs/hta/bin/python bench/_hta.py TRACE...` prints JSON: the figures of each trace, in their
order, in microseconds; CPU seconds and peak memory of all of it. tests/data/hta.json is made of it.
"""

from __future__ import annotations

import json
import logging
import resource
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any


def cpu_s() -> float:
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def rows(table: Any) -> list[dict[str, Any]]:
    """Return a table of HTA's; of traces without communication it makes none, and raises."""
    try:
        found: list[dict[str, Any]] = table().to_dict("records")
    except Exception as exc:  # whatever pandas raises
        print(f"hta: {type(exc).__name__}: {exc}", file=sys.stderr)
        return []
    return found


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]

    before = cpu_s()
    said = sys.stdout
    sys.stdout = sys.stderr  # it prints what it does
    with tempfile.TemporaryDirectory() as folder:
        ranks = {}
        for rank, file in enumerate(map(Path, sys.argv[1:])):
            copy = Path(folder) / f"rank-{rank}.json.gz"
            if file.suffix == ".gz":
                shutil.copyfile(file, copy)
            else:  # it reads gzip by its name alone
                copy = copy.with_suffix("")
                shutil.copyfile(file, copy)
            ranks[rank] = str(copy)
        analysis = TraceAnalysis(trace_files=ranks, trace_dir=folder)
        temporal = analysis.get_temporal_breakdown(visualize=False).to_dict("records")
        overlap = rows(lambda: analysis.get_comm_comp_overlap(visualize=False))
        kernels = rows(lambda: analysis.get_gpu_kernel_breakdown(visualize=False)[1])
        rows(lambda: analysis.get_idle_time_breakdown(visualize=False)[0])
    took = cpu_s() - before
    peaks = [resource.getrusage(who).ru_maxrss / 1024
             for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]  # fmt: skip
    found = []
    for rank in ranks:
        one = next(row for row in temporal if row["rank"] == rank)
        share = next((row for row in overlap if row["rank"] == rank), {})
        longest = sorted(
            (row for row in kernels if row["rank"] == rank and row["name"] != "others"),
            key=lambda row: -row["sum (us)"],
        )
        found.append({
            "total_us": float(one["kernel_time(us)"]),
            "idle_us": float(one["idle_time(us)"]),
            "compute_us": float(one["compute_time(us)"]),
            "non_compute_us": float(one["non_compute_time(us)"]),
            "overlap_pct": share.get("comp_comm_overlap_pctg"),
            "longest": [longest[0]["name"], float(longest[0]["sum (us)"])] if longest else None,
        })  # fmt: skip
    sys.stdout = said
    print(json.dumps({"traces": found, "cpu_s": took, "peak_mb": max(peaks)}, allow_nan=True))


if __name__ == "__main__":
    main()
