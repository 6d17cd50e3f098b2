"""`rlprof top RUN`: a live run in the terminal."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from rlprof_cli.arguments import add_run
from rlprof_report.commands._others import name_others
from rlprof_run import read

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from rlprof_report._top.live import Live

_EVERY_S = 1.0
_UP, _CLEAR = "\x1b[{}F", "\x1b[J"


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "top",
        help="watch a live run",
        description="Show once a second what a run is doing: the running step and its phases, "
        "trajectories, recordings, memory, devices and engines, then the last steps "
        "with the rank that the others waited for. It reads only new lines of the run, and ends "
        "when the run does, with the verdict of `rlprof why` without traces. Press Ctrl-C to end "
        "it earlier. If the output is not a terminal, it shows one screen.",
    )
    add_run(parser)
    parser.add_argument("--once", action="store_true", help="show one screen and end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw until the run ends."""
    from rlprof_report._top.live import Live

    live = Live(read(args.path))
    live.look()
    name_others("top", args.path, live.path)
    try:
        if args.once or not sys.stdout.isatty():
            print(_drawn(live))
        else:
            _watch(live)
    except KeyboardInterrupt:  # the usual way to end it
        return 0
    if not live.is_running:
        print(f"\n{_verdict(live.path)}")
    return 0


def _watch(live: Live) -> None:
    text = _drawn(live)
    print(text, flush=True)
    while live.is_running:
        time.sleep(_EVERY_S)
        live.look()
        above = _UP.format(text.count("\n") + 1)
        text = _drawn(live)
        print(f"{above}{_CLEAR}{text}", flush=True)


def _drawn(live: Live) -> str:
    from rlprof_report._top.screen import screen

    size = shutil.get_terminal_size((100, 24))
    return screen(live, width=size.columns, height=size.lines - 1)


def _verdict(path: Path) -> str:
    from rlprof_report import analyse
    from rlprof_report._terminal import wrapped

    words = analyse(read(path), most_json_bytes=0).verdict
    return "\n".join(wrapped(words, shutil.get_terminal_size((100, 24)).columns))
