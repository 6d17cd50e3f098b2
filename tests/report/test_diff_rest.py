"""What `rlprof diff` compares besides times, and its statistics on times whose truth is known."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import rlprof
from rlprof_report import analyse
from rlprof_report._diff import Part, Series, diff, effect, text
from rlprof_report._diff.effect import posterior
from rlprof_report._diff.times import _judged
from rlprof_report.device.values import CaptureDevice, Device, TopName
from rlprof_report.values import Finding
from rlprof_report.values.diff import Change
from tests.report.folder import Driven


@pytest.fixture(name="part")
def _part(tmp_path):
    """Return a part of a run of 12 like steps, with nothing found in it."""
    run = Driven(tmp_path / "run")
    for step in range(1, 13):
        run.step(step, {"rollout": 2, "update_actor": 1}, tokens=10)
    recorded = rlprof.read(run.written())
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
    """Slower, faster, new and gone; what hardly differs, was hardly called or not meant is not."""
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
    assert diff(a, attrs.evolve(b, ranges=(range(6, 13),), typed="6-12")).kernels == ()


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


def steps(rng, count, *, slower=0.0, rho=0.0, longer=1.0, noise=0.03):
    """Draw a run: lengths that drift, times that grow with them, noise that neighbours share."""
    noises = rng.normal(0, noise, count)
    for at in range(1, count):
        noises[at] = rho * noises[at - 1] + np.sqrt(1 - rho**2) * noises[at]
    drift = np.linspace(1, 1 + rng.uniform(0.1, 0.5), count)
    tokens = 1000 * longer * drift * np.exp(rng.normal(0, 0.08, count))
    seconds = (3 + 0.02 * tokens) * (1 + slower) * np.exp(noises)
    return Series(seconds=seconds, tokens=tokens, at=np.arange(count, dtype=float))


def test_the_effect_is_the_planted_one():
    """The interval holds what was planted, and the exponent is that of the times."""
    rng = np.random.default_rng(3)

    found = effect(steps(rng, 200), steps(rng, 200, slower=0.1, longer=1.3))

    assert found.low < 0.1 < found.high
    assert found.change == pytest.approx(0.1, abs=0.02)
    assert found.exponent == pytest.approx(0.88, abs=0.05)  # of 3 + 0.02 tokens, nearby
    assert found.p < 1e-6


@pytest.mark.parametrize(
    ("chances", "seen"),
    [((0.04,), 1), ((0.04, 0.04, 0.5), 0), ((0.03, 0.001, 0.02), 3), ((0.03, 0.001, 0.2), 1)],
)
def test_the_more_phases_the_surer_each_must_be(chances, seen):
    """Like runs with many phases raise no more alarms than those with one: Holm's method."""
    one = Change("a", "no difference seen", 1.0, 1.1, 20, 20, change=0.1)

    judged = _judged([attrs.evolve(one, p=p) for p in chances])

    assert [change.state for change in judged].count("slower") == seen


@pytest.mark.slow
def test_like_runs_are_not_told_apart():
    """Runs that differ by chance alone raise few alarms, whatever their neighbours share."""
    alarms = 0
    for count, rho in ((20, 0.0), (20, 0.6), (60, 0.3)):
        rng = np.random.default_rng(19)
        for _ in range(150):
            mixture, _, _ = posterior(steps(rng, count, rho=rho), steps(rng, count, rho=rho))
            alarms += mixture.p < 0.05

    assert alarms / 450 <= 0.06
