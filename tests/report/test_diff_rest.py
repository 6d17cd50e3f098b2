"""What `rlprof diff` compares besides times: findings, slots, kernels."""

from __future__ import annotations

import attrs
import pytest

import rlprof
from rlprof_report import analyse
from rlprof_report._diff import Part, diff, text
from rlprof_report.device.values import CaptureDevice, Device, TopName
from rlprof_report.values import Finding
from tests.report.written_runs import WrittenRun


@pytest.fixture(name="part")
def _part(tmp_path):
    """Return a part of a run of 12 like steps, with nothing found in it."""
    run = WrittenRun(tmp_path / "run")
    for step in range(1, 13):
        run.step(step, {"rollout": 2, "update_actor": 1}, tokens=10)
    run.end()
    recorded = rlprof.read(run.path)
    return Part(recorded, analyse(recorded))


def found(cause, *where):
    """Return a finding."""
    return Finding(
        cause=cause, title=f"{cause} is slow", evidence=(), seconds=1.0, bound_s=1.0, share=0.3,
        steps=(5,), where=where,
    )  # fmt: skip


def traced(part, *kernels, window="5/update_actor"):
    """Give *part* a trace with these kernels: name, median in us, calls, share."""
    rows = tuple(
        TopName(name, median * count / 1e6, count, median / 1e6, share, "compute")
        for name, median, count, share in kernels
    )
    capture = CaptureDevice(
        file="t", window=window, target="actor 0/1", role="actor", rank=0, replica=None,
        tool="torch", part="", device_events=9, host_events=9, unlaunched=0, graph_kernels=0,
        temporal=None, idle=None, kernels=rows, operators=(), memory=(),
    )  # fmt: skip
    device = Device(rules="rlprof", captures=(capture,), roles=(), late=(), requests=())
    return attrs.evolve(part, analysis=attrs.evolve(part.analysis, device=device))


def test_findings_that_came_and_went_are_named(part):
    """The same cause in the same place, in another process, is neither."""
    a = attrs.evolve(part, findings=(found("straggler", "actor 5: spans/a.jsonl"), found("tail")))
    b = attrs.evolve(part, findings=(found("straggler", "actor 5: spans/b.jsonl"), found("sync")))

    compared = diff(a, b)

    assert [finding.cause for finding in compared.came] == ["sync"]
    assert [finding.cause for finding in compared.went] == ["tail"]


def test_kernels_that_differ_are_named(part):
    """Slower, faster, new and gone; what hardly differs or was hardly called is left out."""
    a = traced(
        part, ("gemm", 100, 50, 0.4), ("attention", 80, 50, 0.3), ("norm", 10, 50, 0.1),
        ("rare", 10, 2, 0.1), ("old", 50, 50, 0.1),
    )  # fmt: skip
    b = traced(
        part, ("gemm", 150, 60, 0.4), ("attention", 40, 50, 0.3), ("norm", 10.5, 50, 0.1),
        ("rare", 90, 2, 0.1), ("new", 50, 50, 0.1),
    )  # fmt: skip

    compared = diff(a, b)

    assert [(one.name, one.state) for one in compared.kernels] == [
        ("gemm", "slower"), ("attention", "faster"), ("old", "gone"), ("new", "new"),
    ]  # fmt: skip
    assert compared.kernels[0].b_median_us == pytest.approx(150)
    assert "slower: gemm (actor): 100.0 us -> 150.0 us, median of 50 and 60 calls" in text(compared)


def test_kernels_of_other_steps_are_left_out(part):
    """Where steps were named, windows outside of them do not count."""
    a, b = traced(part, ("gemm", 100, 50, 0.6)), traced(part, ("gemm", 200, 50, 0.6))
    b = attrs.evolve(b, ranges=(range(6, 13),), typed="6-12")

    assert diff(a, b).kernels == ()


def test_slots_that_differ_are_compared(part):
    """Utilisation stands with both values, and only where they differ."""
    steps = tuple(
        attrs.evolve(step, rollout=attrs.evolve(step.rollout, utilisation=0.5))
        for step in part.analysis.steps
    )
    b = attrs.evolve(part, analysis=attrs.evolve(part.analysis, steps=steps))

    compared = diff(part, b)

    assert [(one.name, one.a, one.b) for one in compared.shares] == [
        ("utilisation of slots", "100 %", "50 %")
    ]
    assert diff(part, part).shares == ()
