"""What recording an engine costs while it generates: one recording measured, and many compared.

An engine is whatever streams tokens and can say how long its own calls took: the benchmarks of the
adapters bring theirs.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from _measure import ratio
from _ways import Flow, Ours

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from _ways import Way

REQUESTS = 4
"""In flight at any time."""
STEPS = 200
"""Engine steps of a recording."""
_BEFORE = 120
_AFTER = 40


class Call(NamedTuple):
    """One call inside the engine's process."""

    name: str
    at: float
    wall: float
    thread: float
    """CPU of the thread that made it."""
    process: float
    """And of all its threads."""


class Engine(Protocol):
    """One engine, and the watch in its process."""

    steps: Sequence[str]
    """The calls it makes for each engine step."""
    inner: str
    """The first of them inside of what a recording has put around it."""
    stops: Sequence[str]
    """The calls that end a recording."""

    def stream(self, name: str, tokens: int) -> AsyncIterator[int]:
        """Have a request answered; yield with each answer how many tokens there are."""

    async def log(self) -> list[Call]:
        """Return and forget the calls."""


class Cost(NamedTuple):
    """One recording."""

    gap: float
    """The longest time between two tokens at stop."""
    stop: float
    """How long its caller waits."""
    cpu: float
    """CPU of the engine's process for it."""
    idle: float
    """CPU of an engine step before, in seconds; median."""
    step: float
    """And while it is recorded."""
    around: float
    """Of that, what a range takes that was put around the model from outside."""
    events: float


async def recorded(engine: Engine, way: Way, name: str) -> Cost:
    """Record 200 engine steps that way."""
    await engine.log()
    flow = Flow(engine.stream, name, REQUESTS)
    await flow.until(_BEFORE)
    asked = time.perf_counter()
    await way.begin()
    began = time.perf_counter()
    await flow.until(flow.tokens + STEPS)
    ends = time.perf_counter()
    await way.end()
    ended = time.perf_counter()
    await flow.until(flow.tokens + _AFTER)
    log = await engine.log()
    await flow.end()
    if isinstance(way, Ours):
        await way.exported()
    late = [at for at in flow.times if at >= ends]
    gaps = (b - a for a, b in zip([ends, *late], late, strict=False))
    stops = [one.process for one in log if one.name in engine.stops and ends < one.at < ended]
    warm = asked - (asked - flow.times[0]) * 0.6  # the first of them run on cold caches
    idle, step = (step_cpu(log, *times, engine.steps) for times in ((warm, asked), (began, ends)))
    outer, inner = (step_cpu(log, began, ends, [one]) for one in (engine.steps[0], engine.inner))
    around = outer - inner if inner else 0.0  # nothing may be around it
    return Cost(max(gaps), ended - ends, max(stops), idle, step, around, way.events())


def step_cpu(log: Sequence[Call], begin: float, end: float, names: Sequence[str]) -> float:
    """Return the CPU of an engine step between two times, median; or of some calls of it."""
    found = {name: [one.thread for one in log if one.name == name and begin < one.at < end]
             for name in names}  # fmt: skip
    return float(sum(statistics.median(times) for times in found.values() if times))


def table(costs: Mapping[str, Sequence[Cost]]) -> None:
    """Print medians, and their ratios to those of the bare one."""
    print(f"  {'':<26}  events  stall s  ratio   stop s  ratio   CPU s  ratio"
          "   CPU of a step, us: before, recorded, range")  # fmt: skip
    for name, some in costs.items():
        bare = costs["bare"]
        if len(some) < len(bare):
            bare = [middle(bare)] * len(some)
        mine = middle(some)
        line = f"  {name:<26} {mine.events:>7.0f}"
        for place in range(3):
            times = ratio([one[place] for one in some], [one[place] for one in bare])
            line += f"  {mine[place]:>7.3f} {times:>6.2f}"
        print(line, *(f"{cpu * 1e6:>9.0f}" for cpu in (mine.idle, mine.step, mine.around)))


def beside_bare(costs: Mapping[str, Sequence[Cost]], name: str) -> tuple[float, float]:
    """Return the ratio of a way's stall to the bare one's, and the extra us of its range."""
    mine, bare = costs[name], costs["bare"]
    stall = ratio([one.gap for one in mine], [one.gap for one in bare])
    around = statistics.median(a.around - b.around for a, b in zip(mine, bare, strict=True))
    return stall, around * 1e6


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the medians."""
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))
