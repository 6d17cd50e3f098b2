"""Arguments that exporters declare; `rlprof export` parses them and passes them on.

Only the exporters that `--to` names are loaded; `--help` loads all installed ones.
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
"""Names that the command line itself keeps among the arguments."""


class _MisfitError(Exception):
    """An exporter declares arguments that cannot be used."""


class _Parser(argparse.ArgumentParser):
    """Raises, where other parsers print and exit."""

    def error(self, message: str) -> Any:
        """Raise *message*."""
        raise _MisfitError(message)


@attrs.frozen(eq=False)
class Declared:
    """The arguments of one exporter."""

    name: str
    parser: argparse.ArgumentParser | None = None
    """A parent of the parser of the command."""
    flags: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    """The names of its arguments after parsing."""
    fault: str = ""
    """Why they cannot be used."""

    def given(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the given arguments; raise PluginError if the exporter declares none rightly."""
        if self.fault:
            raise PluginError(f"{_offer(self.name)} {self.fault}")
        return {name: getattr(args, name) for name in sorted(self.names) if hasattr(args, name)}


def declared(argv: Sequence[str], own: Callable[[argparse.ArgumentParser], None]) -> list[Declared]:
    """Ask the exporters that *argv* names; *own* adds the command's own arguments."""
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
    """Name the exporter that declares one of the unknown arguments; empty: there is none.

    Raises PluginError if an exporter that `--to` names cannot take any.
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
                    f"argument {flag}: belongs to exporter {name!r}, which --to does not name; "
                    f"use --to {args.to},{name}"
                )
    return ""


def _asked(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the exporters that `--to` names, and whether help is wanted."""
    parser = _Parser(add_help=False)
    parser.add_argument("--to", default=DEFAULT)
    parser.add_argument("-h", "--help", action="store_true")
    try:
        args, _ = parser.parse_known_args(words)
    except _MisfitError:  # the parser of the command reports it
        return [], False
    return args.to.split(","), args.help


def _installed() -> Iterator[str]:
    return (offer.name for offer in offers() if offer.kind == "exporter")


def _ask(name: str) -> Declared:
    """Let the exporter *name* declare its arguments; a broken one declares none here."""
    try:
        arguments = getattr(plugins.load("exporter", name), "arguments", None)
    except PluginError:  # reported when it is used
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
    actions = parser._actions  # noqa: SLF001 -- argparse has no public list
    by_place = [action.dest for action in actions if not action.option_strings]
    if name and by_place:
        raise _MisfitError(f"{by_place[0]!r} has no flag; call it --{by_place[0]}")
    flags = frozenset(flag for action in actions for flag in action.option_strings)
    names = frozenset(action.dest for action in actions)
    return Declared(name, parser, flags, names if name else names | _TAKEN)


def _clash(one: Declared, other: Declared) -> str:
    """Say which argument both declare; empty: none."""
    flags = sorted(one.flags & other.flags) or sorted(one.names & other.names)
    if not flags:
        return ""
    if not other.name:
        return f"declares {flags[0]}, an argument of `rlprof export` itself; it must rename it"
    return f"declares {flags[0]}, as {_offer(other.name)} does; run them one by one"


def _offer(name: str) -> str:
    mine = (str(one) for one in offers() if one.kind == "exporter" and one.name == name)
    return next(mine, f"exporter {name!r}")
