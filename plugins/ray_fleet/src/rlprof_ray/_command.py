"""`rlprof collect RUN`: collect the files that a fleet left on its nodes."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof.config import Limits
from rlprof.errors import one_line
from rlprof.rundir import RunFolder
from rlprof_ray._connect import connect
from rlprof_run import Place, read

if TYPE_CHECKING:
    from rlprof import Run
    from rlprof_ray._visit import Outcome


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "collect",
        help="collect the files that a fleet left on its nodes",
        description="Copy into RUN the files that members of a fleet on Ray wrote on the disks of "
        "their nodes. A fleet does this when it closes, unless the config says no, its driver "
        "died, the disk was full or a node did not answer. You may run the command any number of "
        "times. A file is removed from its node once its "
        "copy in RUN has the same checksum. Exit code 1: something is left; `rlprof ls RUN` says "
        "what.",
    )
    parser.add_argument("path", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--address", default="auto", metavar="ADDRESS", help="the cluster (default: %(default)s)"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=Limits().export_timeout_s,
        metavar="S",
        help="seconds for all of it (default: %(default)g)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a line for each folder; return 0 if nothing is left."""
    from rlprof_ray._collect import collect

    recorded = read(args.path)
    if not recorded.left:
        print("nothing to collect: no files are left on other nodes")
        return 0
    places = [Place(one.node, one.host, one.folder) for one in recorded.left]
    connect(args.address, "collect")
    outcomes = collect(
        RunFolder(recorded.path.absolute(), recorded.run_id, recorded.attempt),
        places,
        of=_driver(recorded),
        within_s=args.timeout,
        say=lambda words: print(one_line(words, longest=1000), flush=True),
    )
    for outcome in outcomes:
        print(one_line(_told(outcome), longest=1500), flush=True)
    return 1 if any(outcome.error for outcome in outcomes) else 0


def _driver(run: Run) -> str:
    """Name the process to whose manifest our lines add."""
    names = [process.name for process in run.processes if process.target.role == "driver"]
    return (names or [process.name for process in run.processes])[0]


def _told(outcome: Outcome) -> str:
    place = outcome.place
    came = f"{outcome.files} file{'s' if outcome.files != 1 else ''}, {_size(outcome.bytes)}"
    words = f"{place.host} {place.folder}: {came} in {outcome.seconds:.1f} s"
    if not outcome.error:
        return words
    left = f"{outcome.left_files} files, " if outcome.left_files else ""
    return f"{words}; left: {left}{outcome.error}"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} B"


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) <= 86400:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected seconds, more than 0 and up to 86400, got {text!r}")
