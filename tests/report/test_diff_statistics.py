"""The statistics of `rlprof diff`, on made-up times whose truth is known."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rlprof_report._diff import Series, effect
from rlprof_report._diff.effect import posterior
from rlprof_report._diff.times import _judged
from rlprof_report.values.diff import Change


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


def test_lengths_that_do_not_vary_within_runs_widen_the_interval():
    """What twice the tokens cost cannot be known from runs of constant length."""
    rng, at = np.random.default_rng(8), np.arange(30.0)
    a = Series(10 * np.exp(rng.normal(0, 0.01, 30)), np.full(30, 1e3), at)
    b = Series(15 * np.exp(rng.normal(0, 0.01, 30)), np.full(30, 2e3), at)

    found = effect(a, b)

    assert found.low < 0 < found.high
    assert found.visible > 0.5


@pytest.mark.parametrize(
    ("chances", "seen"),
    [
        ((0.04,), 1),
        ((0.04, 0.04, 0.5), 0),
        ((0.03, 0.001, 0.02), 3),
        ((0.03, 0.001, 0.2), 1),
    ],
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
