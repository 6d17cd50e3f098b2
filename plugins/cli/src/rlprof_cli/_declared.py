"""Arguments that exporters declare; `rlprof export` parses them and passes them on.

Only the exporters that `--to` names are loaded; `--help` loads all installed ones.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.errors import PluginError
from rlprof_cli.offers import offers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT = "timeline"
"""The exporter, if none is named."""


@attrs.frozen(eq=False)
class Declared:
    """The arguments of one exporter."""

    name: str
    parser: argparse.ArgumentParser | None = None
    """A parent of the parser of the command."""
    flags: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    """The names of its arguments after parsing."""

    def given(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the given arguments."""
        return {name: getattr(args, name) for name in sorted(self.names) if hasattr(args, name)}


def declared(argv: Sequence[str]) -> list[Declared]:
    """Ask the exporters that *argv* names."""
    place = next((n for n, word in enumerate(argv) if not word.startswith("-")), None)
    if place is None or argv[place] != "export":
        return []
    names, wants_all = _asked(argv[place + 1 :])
    return [_ask(name) for name in dict.fromkeys([*names, *(_installed() if wants_all else ())])]


def whose(left: Sequence[str], args: argparse.Namespace) -> str:
    """Name the exporter that declares one of the unknown arguments; empty: there is none."""
    for one in args.declared:
        plugins.load("exporter", one.name)
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
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--to", default=DEFAULT)
    parser.add_argument("-h", "--help", action="store_true")
    try:
        args, _ = parser.parse_known_args(words)
    except argparse.ArgumentError:  # the parser of the command reports it
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
    parser = argparse.ArgumentParser(add_help=False)
    arguments(parser.add_argument_group(name))
    actions = parser._actions  # noqa: SLF001 -- argparse has no public list
    flags = frozenset(flag for action in actions for flag in action.option_strings)
    return Declared(name, parser, flags, frozenset(action.dest for action in actions))
