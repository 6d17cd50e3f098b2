"""`rlprof salvage RUN`: export what killed processes left on this host."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlprof.config import Limits
from rlprof_cli.arguments import add_run, duration
from rlprof_cli.table import plain
from rlprof_run import read
from rlprof_run.salvage import candidates, salvage

if TYPE_CHECKING:
    import argparse


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "salvage",
        help="export what killed processes left on disk",
        description="Export the windows of RUN whose process was killed or whose export failed, "
        "from the raw data in the scratch folders of this host. A window that was never closed is "
        "at best partial; the output says which part is missing. Run the command once on every "
        "host that `rlprof ls RUN` names. Raw data that cannot be exported stays in place.",
    )
    add_run(parser)
    parser.add_argument(
        "--timeout",
        type=duration,
        default=Limits().export_timeout_s,
        metavar="S",
        help="seconds for each window (default: %(default)g)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print each window with its outcome; return 0 if nothing is left to salvage."""
    recorded = read(args.path)
    if recorded.is_running:
        print("the run is live; only processes that have ended are examined")
    todo = len(candidates(recorded))
    if not todo:
        print("nothing to salvage: every window of an ended process was exported, or tried")
        return 0
    made = 0
    for done, one in enumerate(salvage(recorded, timeout_s=args.timeout), start=1):
        capture = one.capture
        made += not one.outcome
        who = f"{capture.window.id} {capture.target} {capture.tool}"
        cut = ", partial: its end is missing" if capture.closed_ns is None else ""
        print(plain(f"{done}/{todo} {who}: {one.outcome or f'salvaged{cut}'}", 1000), flush=True)
    if made:
        print(f"\nsee it with: rlprof ls {recorded.path}", flush=True)
    left = len(candidates(read(args.path)))
    if left:
        print(f"rlprof: {left} of {todo} could not be salvaged here", file=sys.stderr)
    elif made < todo:
        print(f"nothing is left to salvage; {todo - made} of {todo} had left no data")
    return 1 if left else 0
