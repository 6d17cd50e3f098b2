"""`rlprof why RUN`: say why steps are slow, or why one step was."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING, Any

from rlprof.schedule import parse_steps
from rlprof_report.commands._others import name_others
from rlprof_run import RUNS, Selection, read

if TYPE_CHECKING:
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
        type=steps_of,
        metavar="STEPS",
        help="compare one step with its neighbours (7), or look at these steps alone (3-5, 3,7-9)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the values as JSON, as report.json has them"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    from rlprof_report import analyse
    from rlprof_report._report import report_json
    from rlprof_report._terminal import WIDTH, text_of

    recorded, step = read(args.path), None
    name_others("why", args.path, recorded.path)
    ranges: tuple[range, ...] = args.step or ()
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


def steps_of(text: str) -> tuple[range, ...]:
    """Read steps as `rlprof export --step` takes them: `7`, `3-5`, `3,7-9`."""
    try:
        return ranges_in(text)
    except ValueError:
        what = f"expected steps like 7, 3-5 or 3,7-9, got {text!r}"
        raise argparse.ArgumentTypeError(what) from None


def ranges_in(text: str) -> tuple[range, ...]:
    """Read steps as a config has them; raise ValueError if *text* names none."""
    return parse_steps([int(one) if one.isdecimal() else one for one in text.split(",")]).ranges


def only(run: Run, ranges: tuple[range, ...]) -> Run:
    """Take the steps of *ranges*; raise RunError if a range holds no step of the run."""
    parts = [run.only(Selection(steps=(one,))) for one in ranges]  # each reads all spans
    return parts[0] if len(parts) == 1 else run.only(Selection(steps=ranges))


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a run; its default is the latest run in outputs/profile."""
    parser.add_argument(
        "path",
        metavar="RUN",
        nargs="?",
        default=RUNS,
        help="a run folder or the id of a run; or a folder of runs, for the latest one "
        "(default: %(default)s)",
    )
