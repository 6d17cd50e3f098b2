"""False alarms and findings of `rlprof diff`, compared with three common methods.

`.envs/test/bin/python bench/diff.py [PAIRS]`: pairs of made-up runs, 1,000 by default. Lengths
drift by 15 to 45 % within a run and differ between runs, times are a part that is fixed and one
that grows with the tokens, and the noise of a step is like that of the one before it.
"""

from __future__ import annotations

import sys
from statistics import NormalDist

import numpy as np
from _measure import machine, verdict

from rlprof_report._diff.effect import Series, posterior

ALARM = 0.05


def made(rng: np.random.Generator, count: int, rho: float, slower: float = 0.0) -> Series:
    """Draw a run of *count* steps; lengths differ by 20 % from run to run."""
    noise = rng.normal(0, 0.03, count)
    for at in range(1, count):
        noise[at] = rho * noise[at - 1] + np.sqrt(1 - rho**2) * noise[at]
    drift = 1 + rng.uniform(0.15, 0.45) * np.linspace(0, 1, count)
    wander = np.cumsum(rng.normal(0, 0.01, count))
    tokens = np.exp(rng.normal(0, 0.2) + rng.normal(0, 0.08, count)) * (drift + wander)
    seconds = (5 + 40 * tokens) * (1 + slower) * np.exp(noise)
    return Series(seconds=seconds, tokens=tokens, at=np.arange(count, dtype=float))


def ours(a: Series, b: Series) -> bool:
    return posterior(a, b)[0].p < ALARM


def five_percent(a: Series, b: Series) -> bool:
    return bool(abs(np.median(b.seconds) / np.median(a.seconds) - 1) > 0.05)


def two_errors(a: Series, b: Series) -> bool:
    error = np.hypot(*(one.seconds.std(ddof=1) / len(one.seconds) ** 0.5 for one in (a, b)))
    return bool(abs(b.seconds.mean() - a.seconds.mean()) > NormalDist().inv_cdf(0.975) * error)


def per_token(a: Series, b: Series) -> bool:
    rates = [Series(one.seconds / one.tokens, one.tokens, one.at) for one in (a, b)]
    return two_errors(*rates)


WAYS = {
    "rlprof diff": ours,
    "medians differ by 5 %": five_percent,
    "means +- 2 errors": two_errors,
    "means of s/token": per_token,
}


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{machine()}\n{pairs} pairs a row; seed 1")
    rng = np.random.default_rng(1)
    mixed = [(int(rng.integers(20, 101)), float(rng.uniform(0, 0.6))) for _ in range(pairs)]
    rhos = rng.uniform(0, 0.6, pairs).tolist()
    mixture, thirty = "20 to 100 steps, rho 0 to .6", "30 steps, rho 0 to .6"
    rows = {mixture: mixed, thirty: [(30, rho) for rho in rhos]}
    rows |= {
        f"{count} steps, rho {rho}": [(count, rho)] * pairs
        for count in (10, 30, 100)
        for rho in (0.0, 0.6)
    }
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for row, drawn in rows.items():
        for name, way in WAYS.items():
            rng = np.random.default_rng(2)  # all ways see the same runs
            like = np.mean([way(made(rng, n, r), made(rng, n, r)) for n, r in drawn])
            slower = np.mean([way(made(rng, n, r), made(rng, n, r, 0.05)) for n, r in drawn])
            found[row, name] = float(like), float(slower)
            print(
                f"{row:30}{name:24}{100 * like:5.1f} % false alarms"
                f"{100 * slower:6.1f} % of 5 % slower found",
                flush=True,
            )
    alarms, missed = found[mixture, "rlprof diff"][0], 1 - found[thirty, "rlprof diff"][1]
    holds = [
        verdict("false alarms of like runs", 100 * alarms, 6, "%"),
        verdict("5 % slower not found in 30 steps", 100 * missed, 30, "%"),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
