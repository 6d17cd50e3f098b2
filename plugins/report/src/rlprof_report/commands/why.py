"""`rlprof why RUN`: say why steps are slow, or why one step was."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING, Any

from rlprof_cli.arguments import add_json, add_run, steps
from rlprof_report.commands._others import name_others
from rlprof_run import Selection, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Run

_MOST_JSON = 300_000_000
"""Bytes of traces: reading more takes over three seconds."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "why",
        help="say why steps are slow: cause, evidence, upper bound of the gain",
        description="Read the spans of RUN, recorded or not, and say what takes longest and why:\n"
        "one screen with the cause, its evidence, an upper bound of the gain, where to look,\n"
        "and what to record next. Steps that recording touched are left out. RUN may be live,\n"
        "ended or killed.",
        epilog="examples:\n  rlprof why\n  rlprof why RUN --step 7\n  rlprof why RUN --step 3-5\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser)
    parser.add_argument(
        "--step",
        type=steps,
        metavar="STEPS",
        help="compare one step with its neighbours (7), or look at these steps alone (3-5, 3,7-9)",
    )
    add_json(parser, "the values, as report.json has them,")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    from rlprof_report import analyse
    from rlprof_report._report import report_json
    from rlprof_report._terminal import WIDTH, text_of

    recorded, step = read(args.path), None
    name_others("why", args.path, recorded.path)
    ranges: Sequence[range] = args.step or ()
    if sum(map(len, ranges)) == 1:
        step = ranges[0].start
    elif ranges:
        recorded = only(recorded, ranges)
    analysis = analyse(recorded, step=step, most_json_bytes=_MOST_JSON)
    some = len(ranges) > 0 and step is None
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    text = text_of(analysis, step=step, some=some, width=width)
    print(report_json(analysis) if args.json else text)
    return 0


def only(run: Run, ranges: Sequence[range]) -> Run:
    """Take the steps of *ranges*; raise RunError if a range holds no step of the run."""
    parts = [run.only(Selection(steps=(one,))) for one in ranges]  # each reads all spans
    return parts[0] if len(parts) == 1 else run.only(Selection(steps=ranges))
