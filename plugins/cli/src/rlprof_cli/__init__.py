"""The `rlprof` command: one file per subcommand, each with `add` (its arguments) and `run`.

Other distributions offer more of them, in the entry-point group `rlprof.commands`.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import traceback
from typing import TYPE_CHECKING

from rlprof.errors import ConfigError, RlprofError
from rlprof.plugins import core_version
from rlprof_cli import (
    capture,
    check,
    completion,
    doctor,
    export,
    ls,
    new,
    plan,
    plugins,
    salvage,
)
from rlprof_cli._next import next_steps
from rlprof_cli._offered import add_offered, wanted
from rlprof_cli._parser import Parser, page

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (check, doctor, plan, plugins, capture, ls, salvage, export, new, completion)

_LISTED = (
    "check", "doctor", "plan", "plugins", "top", "capture", "attach", "why", "ls", "diff",
    "export", "view", "salvage", "collect", "fetch", "send", "new", "completion",
)  # fmt: skip
"""The order of the list, as in docs/commands.md; others come last."""
_EPILOG = """\
a first run:
  rlprof check profile.yaml            is the config valid, are its plugins installed?
  rlprof doctor profile.yaml           will it work on this host?
  rlprof plan profile.yaml             what would be recorded?
  python train.py                      records, if it calls rlprof.open("profile.yaml")
  rlprof ls                            which runs are there?
  rlprof capture --next 2              record more of the live run
  rlprof ls latest                     what was captured, what was not, and why
  rlprof why                           why are its steps slow? (rlprof-report)
  rlprof salvage                       export what killed processes left on disk
  rlprof export --to timeline          one timeline for https://ui.perfetto.dev
  rlprof new tool my_tool              start a plugin of your own
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code.

    0; 1 for what is wrong; 2 for wrong usage; 130 after Ctrl-C.
    """
    is_verbose, command = False, None
    try:
        parser = command_line(sys.argv[1:] if argv is None else argv)
        args = _parsed(parser, argv)
        is_verbose, command = _mind(args), args.command
        if isinstance(sys.stdout, io.TextIOWrapper):  # a name may hold what a terminal cannot show
            sys.stdout.reconfigure(errors="backslashreplace")
        if command is None:
            print(next_steps(args.parsers))
        code = 0 if command is None else int(args.run(args))
        if sys.stdout is not None:  # it is closed, by `>&-`
            sys.stdout.flush()
    except BrokenPipeError:  # `rlprof ls RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RlprofError, OSError) as exc:
        if is_verbose:
            traceback.print_exc()
        what = _refused(exc) if isinstance(exc, OSError) else exc
        where = (isinstance(exc, ConfigError) and exc.page) or page(command)
        print(f"rlprof: {what}\n{where}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # the commands have ended their children by now
        print("rlprof: interrupted", file=sys.stderr)
        return 130
    return code


def _mind(args: argparse.Namespace) -> bool:
    """Be quiet or verbose, as asked; return whether verbose."""
    if getattr(args, "quiet", False):
        os.environ["RLPROF_QUIET"] = "1"
    if getattr(args, "verbose", False):
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        return True
    return False


def command_line(argv: Sequence[str] = ()) -> Parser:
    """Make the parser of all commands; *argv* decides which other distributions add theirs."""
    parser = Parser(
        prog="rlprof",
        description="Profile a whole RL post-training step: training ranks and rollout engines.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"rlprof {core_version() or '(not installed)'}"
    parser.add_argument(
        "--version", action="version", version=version, help="show the version and exit"
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", dest="command")
    for command in COMMANDS:
        command.add(subparsers)
    own = set(subparsers.choices)
    if wanted(argv, own):
        add_offered(subparsers, own)
    subparsers._choices_actions.sort(key=_place)  # noqa: SLF001 -- argparse lists as added
    parser.set_defaults(parser=parser, parsers=subparsers.choices)
    for one in (parser, *dict.fromkeys(subparsers.choices.values())):
        one.add_manners()
    return parser


def _place(listed: argparse.Action) -> int:
    return _LISTED.index(listed.dest) if listed.dest in _LISTED else len(_LISTED)


def _parsed(parser: Parser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse *argv*; the command that got an unknown argument refuses it, with its usage."""
    args, left = parser.parse_known_args(argv)
    if args.command == "check" and not any(one.startswith("-") for one in left):
        args.overrides, left = [*args.overrides, *left], []  # argparse takes none behind an option
    if left:
        args.parsers.get(args.command, parser).refuse(left)
    return args


def _refused(exc: OSError) -> str:
    """Describe what the system refused, with the file first."""
    why = (exc.strerror or str(exc)).lower()
    return why if exc.filename is None else f"{exc.filename}: {why}"
