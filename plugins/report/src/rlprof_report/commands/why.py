"""`rlprof why RUN`: why are steps slow, or why was this one?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlprof.errors import RunError
from rlprof.rundir import find_runs, read

_MOST_JSON = 300_000_000
"""Bytes of traces: reading more takes over three seconds."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "why",
        help="say why steps are slow: cause, evidence, upper bound of the gain",
        description="Read the spans of RUN, recorded or not, and say what takes longest and\n"
        "why: one screen with the cause, its evidence, an upper bound of the gain, where to\n"
        "look, and what to record next. Steps that recording touched are left out. RUN may\n"
        "be live, ended or killed.",
        epilog="examples:\n  rlprof why\n  rlprof why RUN --step 7\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser)
    parser.add_argument("--step", type=int, metavar="N", help="compare step N with its neighbours")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    from rlprof_report import analyse
    from rlprof_report._terminal import text_of

    recorded = read(youngest(Path(args.path)))
    analysis = analyse(recorded, step=args.step, most_json_bytes=_MOST_JSON)
    print(text_of(analysis, step=args.step))
    return 0


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a run; its default is the latest run in outputs/profile."""
    parser.add_argument(
        "path",
        metavar="RUN",
        nargs="?",
        default="outputs/profile",
        help="a run folder; or a folder of runs, for the latest one (default: outputs/profile)",
    )


def youngest(path: Path) -> Path:
    """Return *path* if it is a run, else the latest run in it; raise RunError if there is none."""
    if (path / "run.json").exists() or not path.is_dir():
        return path
    runs = find_runs(path)
    if not runs:
        raise RunError(f"{path}: holds no run; name a run folder, <run_dir>/<run id>")
    return runs[-1]
