"""Options that select a part of a run, and the selection they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_cli._arguments import moment, names, steps
from rlprof_run import Selection

if TYPE_CHECKING:
    import argparse

_FLAGS = {
    "steps": "--step",
    "roles": "--role",
    "windows": "--window",
    "only": "--only",
    "from_s": "--from",
    "until_s": "--until",
}
"""What an argument is called after parsing → as it is typed."""


def add_part(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group(
        "a part of the run",
        "You may repeat each option but the times, or name several: --role actor,rollout. Only "
        "what matches all options is read.",
    )
    group.add_argument(
        "--step",
        dest="steps",
        action="extend",
        type=steps,
        metavar="STEPS",
        help="these steps: 3, or 3,5-7 (default: all)",
    )
    group.add_argument(
        "--role",
        dest="roles",
        action="extend",
        type=names,
        metavar="ROLE",
        help="this role (default: all)",
    )
    group.add_argument(
        "--window",
        dest="windows",
        action="extend",
        type=names,
        metavar="WINDOW",
        help="this window, as rlprof ls names it: 7/update_actor; or all windows of a phase: "
        "update_actor (default: all)",
    )
    group.add_argument(
        "--only",
        action="extend",
        type=names,
        metavar="WHAT",
        help="a tool or an engine, as rlprof ls names it; spans; windows without their captures "
        "(default: everything)",
    )
    group.add_argument(
        "--from",
        dest="from_s",
        type=moment,
        metavar="TIME",
        help="skip what ended earlier than this time after the start of the run: 12.5 (seconds), "
        "90s, 2m, 1h (default: its start)",
    )
    group.add_argument(
        "--until",
        dest="until_s",
        type=moment,
        metavar="TIME",
        help="skip what begins at this time or later (default: its end)",
    )


def part_of(args: argparse.Namespace, opened_ns: int) -> Selection:
    """Return what was asked for of a run that began at *opened_ns*."""
    after, until = (None if one is None else opened_ns + one for one in (args.from_s, args.until_s))
    return Selection(
        steps=args.steps or (),
        roles=args.roles or (),
        windows=args.windows or (),
        only=args.only or (),
        from_ns=after,
        until_ns=until,
    )


def typed(args: argparse.Namespace) -> list[str]:
    """Name the options that were given."""
    return [flag for name, flag in _FLAGS.items() if getattr(args, name) is not None]
