"""What rlprof costs while it is off, compared with verl 0.9.1 in the same process.

Run in the environment `peer`: `make bench`, or `.envs/peer/bin/python bench/off.py`.
"""

from __future__ import annotations

import sys

from _measure import machine, nanoseconds, verdict
from verl.utils.profiler import DistProfiler

import rlprof


class Worker:
    """Methods as a training worker has them: plain, annotated by rlprof, annotated by verl."""

    def __init__(self) -> None:
        self.profiler = DistProfiler(rank=0)  # no config: disabled

    def plain(self, x: int) -> int:
        return x

    @rlprof.annotate("update_actor")
    def ours(self, x: int) -> int:
        return x

    @DistProfiler.annotate(role="update_actor")  # type: ignore[untyped-decorator]
    def theirs(self, x: int) -> int:
        return x

    async def plain_coroutine(self, x: int) -> int:
        return x

    @rlprof.annotate("update_actor")
    async def our_coroutine(self, x: int) -> int:
        return x


def drive(coroutine: object) -> None:
    """Run a coroutine that never waits, without an event loop's cost."""
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        pass


def main() -> int:
    off = rlprof.open(None)
    worker = Worker()

    def pair() -> None:
        off.step(7)
        with off.phase("update_actor"):
            pass

    def nothing() -> None:
        pass

    # Interleaved: each thing is measured in turn, several times over, and its best counts.
    things = {
        "nothing": nothing,
        "pair": pair,
        "plain": lambda: worker.plain(1),
        "ours": lambda: worker.ours(1),
        "plain coroutine": lambda: drive(worker.plain_coroutine(1)),
        "our coroutine": lambda: drive(worker.our_coroutine(1)),
        "verl": lambda: worker.theirs(1),
    }
    best = dict.fromkeys(things, float("inf"))
    for _ in range(5):
        for name, thing in things.items():
            number = 20_000 if name == "verl" else 100_000
            best[name] = min(best[name], nanoseconds(thing, number, 5))
    print(f"off: {machine()}")
    for name, value in best.items():
        print(f"  {name:<20} {value:8.0f} ns")
    ours = best["ours"] - best["plain"]
    theirs = best["verl"] - best["plain"]
    print(f"  verl 0.9.1 disabled annotate costs {theirs:.0f} ns, ours {ours:.0f} ns")
    holds = [
        verdict("step() + phase()", best["pair"] - best["nothing"], 250, "ns"),
        verdict("annotated call over undecorated", ours, 100, "ns"),
        verdict(
            "annotated coroutine over undecorated",
            best["our coroutine"] - best["plain coroutine"],
            250,
            "ns",
        ),
        verdict("our cost / verl's cost (1/20 or less)", ours / theirs, 1 / 20, ""),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
