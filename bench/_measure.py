"""What the benchmarks share: a fair minimum, paired ratios, the machine's name."""

from __future__ import annotations

import platform
import statistics
import timeit
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def nanoseconds(function: Callable[[], object], number: int = 100_000, repeat: int = 15) -> float:
    """Return the cost of one call, least of *repeat* runs: other jobs only ever add."""
    return min(timeit.repeat(function, number=number, repeat=repeat)) / number * 1e9


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of runs made next to each other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def machine() -> str:
    """Name the machine, for every figure needs one."""
    model = "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            model = next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        pass
    import os

    return f"{model}, {os.cpu_count()} cores, CPython {platform.python_version()}"


def verdict(name: str, value: float, limit: float, unit: str) -> bool:
    """Print one figure with its limit; return whether it holds."""
    holds = value <= limit
    print(f"  {name:<58} {value:>9.3g} {unit:<3} (limit {limit:g}) {'ok' if holds else 'MISSED'}")
    return holds
