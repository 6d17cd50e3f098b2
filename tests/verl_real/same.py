"""Whether verl trains the same without rlprof, with it off, recorded, and recorded from outside.

`python -m tests.verl_real.same [WAY ...]` trains once for each way, and compares with the first:
what verl logs of its steps (losses, rewards, gradient norms: all numbers but times), and the
weights that its replicas receive, bit by bit. `--with KEY=VALUE` overrides verl's config for all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from tests.verl_real.training import WAYS, Trained, train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_run import CaptureResult, Span

_FLAGS = {"shapes": "record_shapes", "memory": "profile_memory", "stack": "with_stack"}
"""What `contents` may name, and what torch calls it."""


def differences(first: Trained, other: Trained) -> list[str]:
    """List the differences: codes, steps, numbers, weights."""
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


@attrs.frozen
class Shift:
    """The relative excess of a step's phases over verl's times of them."""

    phases: float
    with_windows: float
    """The same, if phases include the time that their windows take to open and to close."""


def shifts(one: Trained) -> dict[int, Shift]:
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
        if one.run is not None and both:
            ours = [span for span in ours if span.name in {*both, "sleep"}]
            total = sum(span.end_ns - span.start_ns for span in ours) / 1e9
            verls = sum(theirs[name] for name in both)
            windows = sum(_around(span, one.run.captures) for span in ours) / 1e9
            found[step] = Shift(total / verls - 1, (total + windows) / verls - 1)
    return found


def _around(span: Span, captures: Sequence[CaptureResult]) -> int:
    """Return the ns that *span* waited for windows, except those that replicas close."""
    own = [
        capture
        for capture in captures
        if (capture.window.phase, capture.window.start_step) == (span.name, span.step)
    ]
    opened = [capture.opened_ns for capture in own]
    closed = [capture.closed_ns or 0 for capture in own if capture.target.replica is None]
    before = span.start_ns - min(opened, default=span.start_ns)
    return max(before, 0) + max(max(closed, default=0) - span.end_ns, 0)


def main(argv: list[str] | None = None) -> int:
    """Train by each way, and print what differs; 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    there = ", ".join(WAYS)
    parser.add_argument("ways", nargs="*", default=["bare", "off"], metavar="WAY", help=there)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--with", action="append", default=[], metavar="KEY=VALUE", dest="keys")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave logs and runs there")
    args = parser.parse_args(argv)
    first, failed = None, False
    for way in args.ways:
        with tempfile.TemporaryDirectory(prefix="same") as made:
            home = args.keep / way if args.keep else Path(made)
            began = time.monotonic()
            one = train(way, home, args.steps, overrides=args.keys)
            told = differences(first, one) if first else []
            _say(way, one, told, time.monotonic() - began)
        failed |= bool(told) or one.code != 0 or not one.steps or not one.weights
        first = first or one
    return int(failed)


def _say(way: str, one: Trained, told: list[str], seconds: float) -> None:
    captures = [] if one.run is None else one.run.captures
    states = [capture.state for capture in captures]
    print(
        f"{way}: exit code {one.code}, {len(one.steps)} steps, "
        f"{'' if one.shell is None else f'exit code {one.shell} of the shell, '}"
        f"{sum(map(len, one.numbers().values()))} numbers, {len(one.weights)} updates, "
        f"{len(told)} differences, {states.count('whole')} of {len(states)} captures whole, "
        f"{sum(map(is_as_asked, captures))} as asked, "
        f"{seconds:.0f} s",
        flush=True,
    )
    for words in told:
        print(f"  {words}", flush=True)
    for step, shift in shifts(one).items():
        print(
            f"  step {step}: phases {shift.phases:+.2%} beside verl's times, "
            f"{shift.with_windows:+.2%} with their windows",
            flush=True,
        )


def is_as_asked(capture: CaptureResult) -> bool:
    """Whether the options that are in force are those that were asked for."""
    asked, applied = dict(capture.asked), capture.applied
    flags = {name: applied.get(flag) for name, flag in _FLAGS.items() if flag in applied}
    contents = asked.pop("contents", ())
    return (
        not capture.unsupported
        and all(is_on == (name in contents) for name, is_on in flags.items())
        and all(applied[key] == value for key, value in asked.items() if key in applied)
    )


if __name__ == "__main__":
    sys.exit(main())
