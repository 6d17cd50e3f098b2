"""Whether verl trains the same without rlprof, with it off, and recorded.

`python -m tests.verl_real.same [WAY ...]` trains once for each way, and compares with the first:
what verl logs of its steps (losses, rewards, gradient norms: each number that is no time), and the
weights that its replicas receive, bit by bit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.verl_real.training import WAYS, Trained, train


def differences(first: Trained, other: Trained) -> list[str]:
    """Say what differs: codes, steps, numbers, weights."""
    told = []
    if first.code != other.code:
        told.append(f"exit code {other.code}, not {first.code}")
    theirs, ours = first.numbers(), other.numbers()
    told += [f"step {step} is in one alone" for step in theirs.keys() ^ ours.keys()]
    for step in theirs.keys() & ours.keys():
        told += [
            f"step {step} {key}: {ours[step].get(key)}, not {theirs[step].get(key)}"
            for key in sorted(theirs[step].keys() | ours[step].keys())
            if ours[step].get(key) != theirs[step].get(key)
        ]
    return told + (["weights"] if first.weights != other.weights else [])


def shifts(one: Trained) -> dict[int, float]:
    """Return by how much the phases of each step add up to more than verl's times of them."""
    spans = [] if one.run is None else list(one.run.spans())
    found = {}
    for step, data in one.steps.items():
        theirs = {key[9:]: value for key, value in data.items() if key.startswith("timing_s/")}
        ours = [
            span
            for span in spans
            if span.target.role == "driver" and span.kind == "phase" and span.step == step
        ]
        both = {span.name for span in ours} & theirs.keys()
        if both:
            total = sum(
                span.end_ns - span.start_ns for span in ours if span.name in {*both, "sleep"}
            )
            found[step] = total / 1e9 / sum(theirs[name] for name in both) - 1
    return found


def main(argv: list[str] | None = None) -> int:
    """Train by each way, and print what differs; 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    there = ", ".join(WAYS)
    parser.add_argument("ways", nargs="*", default=["bare", "off"], metavar="WAY", help=there)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args(argv)
    first, failed = None, False
    for way in args.ways:
        with tempfile.TemporaryDirectory(prefix="same") as home:
            began = time.monotonic()
            one = train(way, Path(home), args.steps)
            told = differences(first, one) if first else []
            _say(way, one, told, time.monotonic() - began)
        failed |= bool(told) or one.code != 0 or not one.steps or not one.weights
        first = first or one
    return int(failed)


def _say(way: str, one: Trained, told: list[str], seconds: float) -> None:
    states = [] if one.run is None else [capture.state for capture in one.run.captures]
    print(
        f"{way}: exit code {one.code}, {len(one.steps)} steps, "
        f"{sum(map(len, one.numbers().values()))} numbers, {len(one.weights)} updates, "
        f"{len(told)} differences, {states.count('whole')} of {len(states)} captures whole, "
        f"{seconds:.0f} s",
        flush=True,
    )
    for words in told:
        print(f"  {words}", flush=True)
    for step, shift in shifts(one).items():
        print(f"  step {step}: phases {shift:+.2%} beside verl's times", flush=True)


if __name__ == "__main__":
    sys.exit(main())
