"""`rlprof diff A B`: show what takes longer in one run than in another, or in later steps."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import RlprofError
from rlprof.rundir import as_json
from rlprof_cli.arguments import add_json, steps
from rlprof_report.commands.why import only
from rlprof_run import read

if TYPE_CHECKING:
    from rlprof_report._diff.part import Part
    from rlprof_report.values import Analysis

_STEPS = re.compile(r"(?P<run>.*):(?P<steps>[0-9][0-9,\- ]*)", re.DOTALL)


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "diff",
        help="compare two runs, or two parts of one",
        description="Show what takes longer in B than in A, at equal tokens: the step and each "
        "phase, with a 95 % interval of the change, and the smallest change that this many steps "
        "can show. Below come findings, slots, kernels, config and versions that differ. An "
        "interval needs 8 steps on each side. The command leaves out steps that recording touched "
        "and, in a whole run, the first 3 steps.",
    )
    for name in ("A", "B"):
        parser.add_argument(
            name.lower(),
            metavar=name,
            help="a run folder, the id of a run, or `latest`; or steps of one: RUN:5-20,30",
        )
    add_json(parser, "the values")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the comparison."""
    import attrs

    from rlprof_report._diff.compared import diff, text

    analyses: dict[Path, Analysis] = {}
    compared = diff(_part(args.a, analyses), _part(args.b, analyses))
    print(as_json(attrs.asdict(compared), indent=2) if args.json else text(compared))
    return 0


def _part(given: str, analyses: dict[Path, Analysis]) -> Part:
    """Read the run and steps that *given* names; analyse each run only once."""
    from rlprof_report import analyse
    from rlprof_report._diff.part import Part

    path, typed = _split(given)
    try:
        ranges = tuple(steps(typed)) if typed else ()
    except argparse.ArgumentTypeError as exc:
        raise RlprofError(f"{given}: {exc}") from exc
    recorded = read(path)
    if recorded.path not in analyses:
        analyses[recorded.path] = analyse(recorded)
    whole = analyses[recorded.path]
    if not whole.steps:
        raise RlprofError(f"{recorded.path}: no steps to compare: {whole.verdict}")
    asked = analyse(only(recorded, ranges)) if ranges else whole
    return Part(recorded, whole, asked.findings, ranges, typed)


def _split(given: str) -> tuple[Path, str]:
    """Split `RUN:5-20` into run and steps, unless a folder has that very name."""
    found = _STEPS.fullmatch(given)
    if found is None or Path(given).exists():
        return Path(given), ""
    return Path(found["run"]), found["steps"].replace(" ", "")
