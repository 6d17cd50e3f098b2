"""Student's t without scipy: its distribution, and quantiles of a mixture of such."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_MANY = 200
"""Degrees of freedom from which on the normal approximation is exact to 1e-6."""


def student_cdf(t: Floats, df: int) -> Floats:
    """Return the probability of at most *t* with *df* degrees of freedom, elementwise.

    The finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4; for many degrees of freedom the
    normal approximation 26.7.8.
    """
    if df > _MANY:
        z = t * (1 - 1 / (4 * df)) / np.sqrt(1 + t * t / (2 * df))
        return np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z.flat]).reshape(z.shape)
    angle = np.arctan(t / math.sqrt(df))
    cos, sin = np.cos(angle), np.sin(angle)
    k = np.arange(2 + df % 2, df - 1, 2)
    factors = cos[..., None] ** 2 * ((k - 1) / k)
    total = 1 + np.cumprod(factors, axis=-1).sum(axis=-1) if df > 1 else np.zeros_like(t)
    inside: Floats = 2 / math.pi * (angle + sin * cos * total) if df % 2 else sin * total
    return 0.5 + inside / 2


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
        low, high = float(self.places.min()), float(self.places.max())
        step = float(self.scales.max())
        while self.below(low) > q:
            low, step = low - step, step * 2
        step = float(self.scales.max())
        while self.below(high) < q:
            high, step = high + step, step * 2
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if self.below(middle) > q else (middle, high)
        return (low + high) / 2
