"""Options that select a part of a run, and the selection they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.schedule import Steps
from rlprof.types import safe_name
from rlprof_cli.arguments import moment, names, steps
from rlprof_run import Selection

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_OPTIONS: dict[str, tuple[str, Callable[[str], object], str]] = {
    "steps": ("STEPS", steps, "these steps: 3, or 3,5-7 (default: all)"),
    "roles": ("ROLE", names, "this role (default: all)"),
    "windows": (
        "WINDOW", names,
        ("this window, as rlprof ls names it: 7/update_actor; or all windows of a phase: "
        "update_actor (default: all)"),
    ),
    "only": (
        "WHAT", names,
        ("a tool or an engine, as rlprof ls names it; spans; windows without their captures "
        "(default: everything)"),
    ),
    "from_s": (
        "TIME", moment,
        ("skip what ended earlier than this time after the start of the run: 12.5 (seconds), "
        "90s, 2m, 1h (default: its start)"),
    ),
    "until_s": ("TIME", moment, "skip what begins at this time or later (default: its end)"),
}  # fmt: skip
"""What an option is called after parsing → its value in the help, what reads it, the help."""


def _flag(name: str) -> str:
    """Return the option as it is typed."""
    return f"--{name.removesuffix('_s').removesuffix('s')}"


def add_part(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group(
        "a part of the run",
        "You may repeat each option but the times, or name several: --role actor,rollout. Only "
        "what matches all options is read.",
    )
    for name, (value, read, words) in _OPTIONS.items():
        action = "store" if read is moment else "extend"
        group.add_argument(
            _flag(name), dest=name, action=action, type=read, metavar=value, help=words
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


def typed(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given, as they were typed, with their values."""
    values = {_flag(name): getattr(args, name) for name in _OPTIONS}
    return {flag: value for flag, value in values.items() if value is not None}


def folder_of(args: argparse.Namespace) -> str:
    """Name a folder after the part that was asked for: `step-3`; the whole run has none."""
    said = [f"{flag[2:]}-{_text(value)}" for flag, value in typed(args).items()]
    return safe_name("_".join(said)) if said else ""


def _text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value / 1e9:g}"
    return str(Steps(tuple(value))) if isinstance(value[0], range) else ",".join(value)
