"""By HTA's rules figures are those of HolisticTraceAnalysis 0.5.0, to the microsecond.

Its own figures are in tests/data/hta.json, as bench/_hta.py prints them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlprof_report.device._trace import figures_of

DATA = Path(__file__).parents[2] / "data"
HTA = json.loads((DATA / "hta.json").read_text())


@pytest.mark.parametrize("name", sorted(HTA))
def test_figures_are_those_of_hta(name):
    """Total, idle, compute and the longest kernel agree on GPU traces of five kinds."""
    wanted = HTA[name]

    found = figures_of(DATA / f"{name}.json.gz", "hta")

    time = found.temporal
    longest = max(found.kernels, key=lambda kernel: found.kernels[kernel].ns)
    assert round(time.window_s * 1e6) == wanted["total_us"]
    assert round(time.idle_s * 1e6) == wanted["idle_us"]
    assert round(time.compute_s * 1e6) == wanted["compute_us"]
    rest = time.window_s - time.idle_s - time.compute_s
    assert round(rest * 1e6) == wanted["non_compute_us"]
    overlap = None if time.overlap is None else round(time.overlap * 100, 2)
    assert overlap == wanted["overlap_pct"]
    assert [longest, found.kernels[longest].ns / 1000] == wanted["longest"]


def test_our_own_rules_leave_nothing_out():
    """HTA drops the last step of torch's profiler; the figures of a window hold all of it."""
    ours = figures_of(DATA / "gpu_2ranks_rank0.json.gz")
    hta = figures_of(DATA / "gpu_2ranks_rank0.json.gz", "hta")

    assert (ours.device_events, hta.device_events) == (1204, 602)
    assert ours.temporal.window_s == pytest.approx(1.222847)
