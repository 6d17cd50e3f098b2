"""How much longer B takes than A at equal tokens, and how sure that is.

Neighbouring steps are alike, so 30 steps do not weigh as 30 independent ones, and lengths drift
while a policy learns. The model is `log t = c + d [B] + g log tokens + noise`, where the noise of
a step keeps the share *rho* of the noise before it. Nobody knows *rho*; each value counts by how
well it explains the steps, which keeps false alarms rare where few steps show little of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_RHOS = np.linspace(0, 0.95, 20)
_EXPONENT, _SPREAD = 0.5, 0.5
"""The prior of the exponent: 0 is a phase that does not depend on lengths, 1 a proportional one. It
matters only if lengths hardly vary within the runs."""
_CURVATURE = 0.04
"""A power law fits only nearby. Times of the form a + b tokens leave this much of the squared
log ratio of the lengths of A and B (tests: lengths up to 2.5 times as long)."""
_SHRINK = 8
"""Each run has its noise, which is drawn to the common one as by this many steps."""
_SURE, _POWER = 0.975, 0.8
_FINEST = 1e-12
"""Squared relative noise of any clock, the least of a run."""


@attrs.frozen(eq=False)
class Series:
    """Seconds of one thing in one run, step by step."""

    seconds: Floats
    tokens: Floats
    """Of the same steps; all 1 if they are unknown."""
    at: Floats
    """The place of each step in the run: steps left out leave gaps."""


def student_cdf(t: Floats, df: int) -> Floats:
    """Return the probability of at most *t* with *df* degrees of freedom, elementwise.

    Wallace's approximation, exact to 1e-4 from ten degrees of freedom on.
    """
    z = np.sign(t) * (8 * df + 1) / (8 * df + 3) * np.sqrt(df * np.log1p(t * t / df))
    return np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in z])


@attrs.frozen(eq=False)
class Mixture:
    """A weighted sum of t distributions, each with its own place and scale."""

    places: Floats
    scales: Floats
    weights: Floats
    """Add up to 1."""
    df: int

    @property
    def mean(self) -> float:
        """Its middle; the distributions are symmetric."""
        return float(self.weights @ self.places)

    @property
    def p(self) -> float:
        """The two-sided probability of 0."""
        below = self.below(0.0)
        return 2 * min(below, 1 - below)

    def below(self, x: float) -> float:
        """Return the probability of at most *x*."""
        return float(self.weights @ student_cdf((x - self.places) / self.scales, self.df))

    def quantile(self, q: float) -> float:
        """Return the x with probability *q* below it, by bisection."""
        reach = 100 * float(self.scales.max())
        low, high = float(self.places.min()) - reach, float(self.places.max()) + reach
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.below(middle) > q else (middle, high)
        return (low + high) / 2


def effect(a: Series, b: Series) -> dict[str, Any]:
    """Compare *b* with *a*, each of at least 3 steps with positive times and tokens.

    The keys are fields of `values.diff.Change`.
    """
    mixture, exponent = posterior(a, b)
    low, high = mixture.quantile(1 - _SURE), mixture.quantile(_SURE)
    half = (high - low) / 2
    logs = [(np.log(one.seconds), exponent * np.log(one.tokens)) for one in (a, b)]
    level = np.concatenate([seconds - grown for seconds, grown in logs])
    level = level.mean() - mixture.mean * len(b.seconds) / len(level)
    return {
        "a_s": float(np.exp(level + logs[0][1].mean())),
        "b_s": float(np.exp(level + logs[1][1].mean() + mixture.mean)),
        "change": float(np.expm1(mixture.mean)),
        "low": float(np.expm1(low)),
        "high": float(np.expm1(high)),
        "visible": float(np.expm1(half + mixture.quantile(_POWER) - mixture.mean)),
        "p": mixture.p,
    }


def posterior(a: Series, b: Series) -> tuple[Mixture, float]:
    """Return the distribution of log(B/A), and the exponent."""
    tables = _table(a, is_b=0.0), _table(b, is_b=1.0)
    middle = np.concatenate([table[:, 3] for table in tables]).mean()
    for table in tables:
        table[:, 3] -= middle
    apart = float(tables[1][:, 3].mean() - tables[0][:, 3].mean())
    noise = _noise(*tables)
    fits = [_fit(tables, (a.at, b.at), rho, noise) for rho in _RHOS.tolist()]
    likelihood, places, scales, exponents = np.array(fits).T
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    df = len(a.at) + len(b.at) + 1 - 3  # one row is the prior of the exponent
    mixture = Mixture(places, np.hypot(scales, _CURVATURE * apart**2), weights, df)
    return mixture, float(weights @ exponents)


def _table(series: Series, *, is_b: float) -> Floats:
    """Lay out log t, 1, [B], log tokens in columns."""
    ones = np.ones(len(series.seconds))
    return np.column_stack([np.log(series.seconds), ones, is_b * ones, np.log(series.tokens)])


def _noise(left: Floats, right: Floats) -> float:
    """Return the common noise of a step around the exponent fitted within the runs."""
    centred = np.concatenate([left - left.mean(axis=0), right - right.mean(axis=0)])
    y, x = centred[:, 0], centred[:, 3]
    slope = (x @ y) / max(float(x @ x), _FINEST)
    return float(np.sqrt(max(((y - slope * x) ** 2).sum() / (len(y) - 3), _FINEST)))


def _fit(tables: Any, at: Any, rho: float, noise: float) -> tuple[float, float, float, float]:
    """Return the likelihood of *rho*, the change with its scale, and the exponent.

    The first fit has one noise for both runs, the second one for each.
    """
    white, shrunk = zip(
        *(_whitened(table, np.diff(when), rho) for table, when in zip(tables, at, strict=True)),
        strict=True,
    )
    believed = np.array([[_EXPONENT, 0, 0, 1]]) * noise / _SPREAD
    _, residuals, _ = _solve(np.concatenate([*white, believed]))
    own = np.split(residuals[:-1], [len(white[0])])
    common = max(sum(float(part @ part) for part in own) / (len(residuals) - 4), _FINEST)
    scales = [
        np.sqrt(common * (len(part) + _SHRINK) / (_unbiased(part) + _SHRINK * common))
        for part in own
    ]
    rows = [part * scale for part, scale in zip(white, scales, strict=True)]
    beta, residuals, inverse = _solve(np.concatenate([*rows, believed]))
    df = len(residuals) - 3
    spread = float(residuals @ residuals) + _FINEST
    scaled = sum(len(part) * np.log(scale) for part, scale in zip(own, scales, strict=True))
    likelihood = scaled - sum(shrunk) + np.linalg.slogdet(inverse)[1] / 2 - df / 2 * np.log(spread)
    return likelihood, beta[1], np.sqrt(spread / df * inverse[1, 1]), beta[2]


def _unbiased(residuals: Floats) -> float:
    """Scale the sum of squares to that of residuals around a known mean."""
    count = len(residuals)
    return float(residuals @ residuals) * count / (count - 1.5)


def _whitened(table: Floats, gaps: Floats, rho: float) -> tuple[Floats, float]:
    """Subtract from each step what the step before it predicts, across the *gaps* between them."""
    kept = rho**gaps
    left = np.sqrt(1 - kept**2)
    white = table.copy()
    white[1:] = (table[1:] - kept[:, None] * table[:-1]) / left[:, None]
    return white, float(np.log(left).sum())


def _solve(rows: Floats) -> tuple[Floats, Floats, Floats]:
    y, x = rows[:, 0], rows[:, 1:]
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ (x.T @ y)
    return beta, y - x @ beta, inverse
