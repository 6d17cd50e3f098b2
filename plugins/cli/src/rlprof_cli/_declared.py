"""Arguments that exporters declare themselves, which `rlprof export` takes and hands to them.

Only those of the exporters that `--to` names are loaded; for `--help` all that are installed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.errors import PluginError, one_line
from rlprof_cli.offers import offers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DEFAULT = "timeline"
"""The exporter, if none is named."""

_TAKEN = {"run", "declared", "command", "parsers", "help"}
"""What the command line itself keeps beside the arguments."""


class _MisfitError(Exception):
    """The arguments of one exporter do not do."""


class _Parser(argparse.ArgumentParser):
    """Raises where others print and exit."""

    def error(self, message: str) -> Any:
        """Raise *message*."""
        raise _MisfitError(message)


@attrs.frozen(eq=False)
class Declared:
    """What one exporter declares."""

    name: str
    parser: argparse.ArgumentParser | None = None
    """To be a parent of the command's."""
    flags: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    """As which its arguments are found after parsing."""
    fault: str = ""
    """Why they are not taken."""

    def given(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return what the command line gave; raise PluginError where nothing could be given."""
        if self.fault:
            raise PluginError(f"{_offer(self.name)} {self.fault}")
        return {name: getattr(args, name) for name in sorted(self.names) if hasattr(args, name)}


def declared(argv: Sequence[str], own: Callable[[argparse.ArgumentParser], None]) -> list[Declared]:
    """Ask the exporters that *argv* is about; *own* adds what the command itself takes."""
    place = next((n for n, word in enumerate(argv) if not word.startswith("-")), None)
    if place is None or argv[place] != "export":
        return []
    names, wants_all = _asked(argv[place + 1 :])
    taken = _Parser()
    own(taken)
    found = [_declare("", taken)]
    for name in dict.fromkeys([*names, *(_installed() if wants_all else ())]):
        one = _ask(name)
        clash = next((clash for other in found if (clash := _clash(one, other))), "")
        if clash:
            one = Declared(name, fault=clash)
        found.append(one)
    return found[1:]


def whose(left: Sequence[str], args: argparse.Namespace) -> str:
    """Say of which exporter an argument is that was left over; empty: of none.

    Raises PluginError if one that `--to` names cannot take any.
    """
    for one in args.declared:
        plugins.load("exporter", one.name)
        one.given(args)
    chosen = {one.name for one in args.declared}
    for name in _installed():
        flags = () if name in chosen else _ask(name).flags
        for flag in (word.partition("=")[0] for word in left):
            if flag in flags:
                return (
                    f"argument {flag}: is for exporter {name!r}, which --to does not name; write "
                    f"--to {args.to},{name}"
                )
    return ""


def _asked(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the exporters that `--to` names, and whether help is wanted."""
    parser = _Parser(add_help=False)
    parser.add_argument("--to", default=DEFAULT)
    parser.add_argument("-h", "--help", action="store_true")
    try:
        args, _ = parser.parse_known_args(words)
    except _MisfitError:  # the command's own parser will say so
        return [], False
    return args.to.split(","), args.help


def _installed() -> Iterator[str]:
    return (offer.name for offer in offers() if offer.kind == "exporter")


def _ask(name: str) -> Declared:
    """Let the exporter *name* declare its arguments; one that is broken declares none here."""
    try:
        arguments = getattr(plugins.load("exporter", name), "arguments", None)
    except PluginError:  # told when it is used
        return Declared(name)
    if arguments is None:
        return Declared(name)
    parser = _Parser(add_help=False)
    try:
        arguments(parser.add_argument_group(name))
        parser.parse_args([])
        parser.format_help()
        return _declare(name, parser)
    except (Exception, SystemExit) as exc:  # a stranger's code
        why = str(exc) if isinstance(exc, _MisfitError) else f"{type(exc).__name__}: {exc}"
        return Declared(name, fault=f"declares arguments wrongly: {one_line(why)}")


def _declare(name: str, parser: argparse.ArgumentParser) -> Declared:
    actions = parser._actions  # noqa: SLF001 -- argparse tells it nowhere else
    by_place = [action.dest for action in actions if not action.option_strings]
    if name and by_place:
        raise _MisfitError(f"{by_place[0]!r} has no flag; call it --{by_place[0]}")
    flags = frozenset(flag for action in actions for flag in action.option_strings)
    names = frozenset(action.dest for action in actions)
    return Declared(name, parser, flags, names if name else names | _TAKEN)


def _clash(one: Declared, other: Declared) -> str:
    """Say what both have; empty: nothing."""
    flags = sorted(one.flags & other.flags) or sorted(one.names & other.names)
    if not flags:
        return ""
    if not other.name:
        return f"declares {flags[0]}, which `rlprof export` has itself; it must call it otherwise"
    return f"declares {flags[0]}, as {_offer(other.name)} does; call them one by one"


def _offer(name: str) -> str:
    mine = (str(one) for one in offers() if one.kind == "exporter" and one.name == name)
    return next(mine, f"exporter {name!r}")
