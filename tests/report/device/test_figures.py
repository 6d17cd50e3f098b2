"""The figures of one trace, from events whose figures are known; by HTA's rules, those of HTA."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlprof_report.device._trace import Stretch, figures_of
from rlprof_report.device.values import Idle, MemoryPeak, Temporal
from tests.report.device.made import EPOCH_NS, kernel, operator, trace

DATA = Path(__file__).parents[2] / "data"
HTA = json.loads((DATA / "hta.json").read_text())
"""What HolisticTraceAnalysis 0.5.0 prints of these traces, by bench/_hta.py."""


def test_idle_time_has_a_cause(tmp_path):
    """A gap is the host's until the launch, then the device's; short gaps are by themselves."""
    made = trace(
        tmp_path / "t",
        kernel("a", 0, 100, launch=0),
        kernel("b", 200, 100, launch=160),  # 60 us launch-bound, 40 us waiting
        kernel("c", 305, 100, launch=10),  # short
        kernel("d", 455, 100, launch=20),  # 50 us waiting
        kernel("e", 655, 100),  # 100 us, no launch in the trace
    )

    found = figures_of(made)

    assert found.idle == Idle(60e-6, 90e-6, 5e-6, 100e-6)
    assert found.unlaunched == 1
    assert found.notes == ("launched before the recording began: 1 of 5 device events",)


def test_of_a_cuda_graph_the_cause_is_not_known(tmp_path):
    """One launch starts many kernels: its time says nothing of a gap before one of them."""
    made = trace(
        tmp_path / "t",
        kernel("a", 0, 100, launch=0, correlation=1),
        kernel("b", 200, 100, launch=150, correlation=2),
        kernel("c", 400, 100, correlation=2),
    )

    found = figures_of(made)

    assert found.idle == Idle(0.0, 0.0, 0.0, 200e-6)
    assert found.graph_kernels == 2
    assert found.notes == ("idle before 2 kernels of CUDA graphs has no known cause",)


def test_what_lies_outside_of_the_window_is_cut_off(tmp_path):
    """Figures are those of the window alone, also of what reaches over its edge."""
    made = trace(
        tmp_path / "t",
        kernel("before", 0, 100),
        kernel("over the edge", 150, 100),
        kernel("inside", 300, 100),
        kernel("after", 600, 100),
        operator("op", 150, 100),
    )

    found = figures_of(made, stretch=Stretch(EPOCH_NS + 200_000, EPOCH_NS + 500_000))

    assert found.temporal.window_s == pytest.approx(200e-6)
    assert {name: one.ns for name, one in found.kernels.items()} == {
        "over the edge": 50_000, "inside": 100_000,
    }  # fmt: skip
    assert found.operators["op"].ns == 50_000


def test_an_operator_has_the_time_without_those_it_calls(tmp_path):
    """Self times add up to the time in which the host was in any operator."""
    made = trace(
        tmp_path / "t",
        operator("outer", 0, 100),
        operator("inner", 10, 50),
        operator("leaf", 20, 20),
        operator("inner", 70, 10),
        operator("outer", 200, 10),
        operator("leaf", 0, 7, thread=2),
    )

    found = figures_of(made)

    assert {name: (one.ns, one.count) for name, one in found.operators.items()} == {
        "outer": (50_000, 2), "inner": (40_000, 2), "leaf": (27_000, 2),
    }  # fmt: skip
    assert found.temporal is None


def test_the_most_memory_is_told_for_each_device(tmp_path):
    """Peaks of allocated and reserved memory are of the window, by device."""

    def memory(at, allocated, reserved, kind=1, number=0):
        args = {"Total Allocated": allocated, "Total Reserved": reserved, "Device Type": kind,
                "Device Id": number}  # fmt: skip
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": at, "args": args}

    made = trace(
        tmp_path / "t", memory(0, 900, 900), memory(100, 500, 600), memory(200, 700, 650),
        memory(300, 100, 800), memory(150, 5, 0, kind=0, number=-1),
    )  # fmt: skip

    found = figures_of(made, stretch=Stretch(EPOCH_NS + 50_000, EPOCH_NS + 500_000))

    assert found.memory == (MemoryPeak("cpu", 5, 0, 100e-6), MemoryPeak("cuda:0", 700, 800, 150e-6))


def test_times_of_the_epoch_keep_their_nanoseconds(tmp_path):
    """A double has every 250th nanosecond of today; the digits have them all."""
    event = '{"ph": "X", "cat": "kernel", "name": "a", "ts": 1712195495520871.%03d, "dur": 0.001}'
    events = ",".join(event % at for at in range(0, 20, 2))
    (tmp_path / "t").write_text(f'{{"traceEvents": [{events}]}}')

    found = figures_of(tmp_path / "t")

    assert found.temporal == Temporal(19e-9, 10e-9, 0.0, 0.0, 9e-9, 0.0, 0.0)


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
