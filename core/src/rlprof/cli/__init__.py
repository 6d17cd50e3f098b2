"""The `rlprof` command: one file per subcommand, each with `add` (its arguments) and `run`."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import TYPE_CHECKING

from rlprof.cli import capture, check, doctor, export, ls, new, plan, plugins, salvage
from rlprof.errors import RlprofError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (check, doctor, plan, plugins, capture, ls, salvage, export, new)

_EPILOG = """\
a first run:
  rlprof check profile.yaml            is the config right, are its plugins there?
  rlprof doctor profile.yaml           will it work on this host?
  rlprof plan profile.yaml             what would be recorded?
  python train.py                      rlprof.open("profile.yaml") in it does the recording
  rlprof ls outputs/profile            which runs are there?
  rlprof capture RUN --next 2          record more of it while it is going on
  rlprof ls RUN                        what was captured, what was not, and why
  rlprof salvage RUN                   export what processes that died have left
  rlprof export RUN --to timeline      one timeline for https://ui.perfetto.dev
  rlprof new tool my_tool              a plugin of your own, to begin with
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code: 0, 1 for what is wrong, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="rlprof",
        description="Profile a whole RL post-training step: training ranks and rollout engines.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(subparsers)
    args = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may hold what a terminal cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = int(args.run(args))
        sys.stdout.flush()
    except BrokenPipeError:  # `rlprof ls RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RlprofError, OSError) as exc:
        print(f"rlprof: {exc}", file=sys.stderr)
        return 1
    return code
