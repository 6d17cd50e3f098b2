"""`rlprof collect RUN`: collect the files that a fleet left on its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.config import Limits
from rlprof.rundir import RunFolder
from rlprof.types import DRIVER
from rlprof_ray._connect import connect
from rlprof_run import Place, read

if TYPE_CHECKING:
    import argparse


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "collect",
        help="collect the files that a fleet left on its nodes",
        description="Copy into RUN the files that members of a fleet on Ray wrote on the disks of "
        "their nodes. A fleet does this when it closes, unless the config says no, its driver "
        "died, the disk was full or a node did not answer. You may run the command any number of "
        "times. A file is removed from its node once all of it is in RUN. Exit code 1: something "
        "is left; `rlprof ls RUN` says what.",
    )
    parser.add_argument("path", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--address", default="auto", metavar="ADDRESS", help="the cluster (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a line for each folder; return 0 if nothing is left."""
    from rlprof_ray._collect import collect

    recorded = read(args.path)
    if not recorded.left:
        print("nothing to collect: no files are left on other nodes")
        return 0
    names = {one.target.role: one.name for one in recorded.processes}
    connect(args.address, "collect")
    outcomes = collect(
        RunFolder(recorded.path.absolute(), recorded.run_id, recorded.attempt),
        [Place(one.node, one.host, one.folder) for one in recorded.left],
        of=names[DRIVER],
        within_s=Limits().export_timeout_s,
    )
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.error for outcome in outcomes) else 0
