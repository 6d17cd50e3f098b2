"""How much longer B takes than A at equal tokens, and how sure that is.

Neighbouring steps are alike, so 30 steps do not weigh as 30 independent ones, and lengths drift
while a policy learns. The model is `log t = c + d [B] + g log tokens + noise`, where the noise of
a step keeps the share *rho* of the noise before it. Nobody knows *rho*; each value counts by how
well it explains the steps, which keeps false alarms rare where few steps show little of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report._diff.student import Mixture

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
"""The noise of each run is its own, drawn to the common one as by this many steps."""
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
    """Where in the run each step stands: those left out leave gaps."""


@attrs.frozen
class Effect:
    """B over A less 1, with its interval: the fields of this name of `values.diff.Change`."""

    change: float
    low: float
    high: float
    visible: float
    p: float
    exponent: float
    a_samples: float
    b_samples: float


@attrs.frozen(eq=False)
class _Fit:
    likelihood: float
    place: float
    scale: float
    exponent: float
    df: int


def effect(a: Series, b: Series) -> Effect:
    """Compare *b* with *a*, each of at least 3 steps with positive times and tokens."""
    mixture, exponent, rho = posterior(a, b)
    low, high = mixture.quantile(1 - _SURE), mixture.quantile(_SURE)
    half = (high - low) / 2
    return Effect(
        change=float(np.expm1(mixture.mean)),
        low=float(np.expm1(low)),
        high=float(np.expm1(high)),
        visible=float(np.expm1(half + mixture.quantile(_POWER) - mixture.mean)),
        p=mixture.p,
        exponent=exponent,
        a_samples=_independent(a, rho),
        b_samples=_independent(b, rho),
    )


def posterior(a: Series, b: Series) -> tuple[Mixture, float, float]:
    """Return what is known of log(B/A), of the exponent, and of the autocorrelation."""
    tables = _table(a, is_b=0.0), _table(b, is_b=1.0)
    middle = np.concatenate([table[:, 3] for table in tables]).mean()
    for table in tables:
        table[:, 3] -= middle
    apart = float(tables[1][:, 3].mean() - tables[0][:, 3].mean())
    noise = _noise(*tables)
    fits = [_fit(tables, (a.at, b.at), rho, noise) for rho in _RHOS.tolist()]
    likelihood = np.array([fit.likelihood for fit in fits])
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    mixture = Mixture(
        places=np.array([fit.place for fit in fits]),
        scales=np.hypot(np.array([fit.scale for fit in fits]), _CURVATURE * apart**2),
        weights=weights,
        df=fits[0].df,
    )
    exponent = float(weights @ np.array([fit.exponent for fit in fits]))
    return mixture, exponent, float(weights @ _RHOS)


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


def _fit(tables: Any, at: Any, rho: float, noise: float) -> _Fit:
    """Fit the model for one *rho*: first with one noise for both runs, then with each its own."""
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
    return _Fit(
        likelihood=float(likelihood),
        place=float(beta[1]),
        scale=float(np.sqrt(spread / df * inverse[1, 1])),
        exponent=float(beta[2]),
        df=df,
    )


def _unbiased(residuals: Floats) -> float:
    """Return the sum of squares that as many residuals of a known mean would have."""
    count = len(residuals)
    return float(residuals @ residuals) * count / (count - 1.5)


def _whitened(table: Floats, gaps: Floats, rho: float) -> tuple[Floats, float]:
    """Take out of each step what the one before it says, across the *gaps* between them."""
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


def _independent(series: Series, rho: float) -> float:
    """Return how many independent steps would give as exact a mean."""
    ones, _ = _whitened(np.ones((len(series.at), 1)), np.diff(series.at), rho)
    return float((ones**2).sum())
