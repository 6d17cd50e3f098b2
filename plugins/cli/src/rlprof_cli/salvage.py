"""`rlprof salvage RUN`: export what processes that died have left on this host."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlprof.config import Limits
from rlprof_cli._arguments import add_run, duration
from rlprof_cli._table import plain
from rlprof_run import read
from rlprof_run.salvage import candidates, salvage

if TYPE_CHECKING:
    import argparse


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "salvage",
        help="export what processes that died have left on disk",
        description="Look for windows of RUN that nobody exported: their process was killed, or "
        "their export failed. What lies of them in the scratch folders of this host is exported "
        "now; a window that was never closed is partial at best, and what is missing is said. "
        "Run it once on every host that `rlprof ls RUN` names. What cannot be exported stays "
        "where it is.",
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
    """Print each window with what became of it; 0 if nothing is lost that lay here."""
    recorded = read(args.path)
    if recorded.is_running:
        print("the run is still going on; only processes that are over are looked at")
    todo = len(candidates(recorded))
    if not todo:
        print("nothing to salvage: every window of a process that is over was exported, or tried")
        return 0
    made = 0
    for done, one in enumerate(salvage(recorded, timeout_s=args.timeout), start=1):
        capture = one.capture
        made += not one.outcome
        who = f"{capture.window.id} {capture.target} {capture.tool}"
        cut = ", partial: its end is missing" if capture.closed_ns is None else ""
        print(plain(f"{done}/{todo} {who}: {one.outcome or f'salvaged{cut}'}", 1000), flush=True)
    if made:
        print(f"\nlook at it with: rlprof ls {recorded.path}", flush=True)
    if made < todo:
        print(f"rlprof: {todo - made} of {todo} could not be salvaged here", file=sys.stderr)
    return 0 if made == todo else 1
