"""Arguments that exporters declare; `rlprof export` parses them and passes them on.

Only the exporters that `--to` names are loaded; `--help` loads all installed ones.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.errors import PluginError
from rlprof_cli.arguments import names as comma_names
from rlprof_cli.offers import offers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT = "timeline"
"""The exporter, if none is named."""


def declared(argv: Sequence[str]) -> dict[str, argparse.ArgumentParser]:
    """Ask the exporters that *argv* names; return a parser of the arguments of each."""
    place = next((n for n, word in enumerate(argv) if not word.startswith("-")), None)
    if place is None or argv[place] != "export":
        return {}
    names, wants_all = _asked(argv[place + 1 :])
    return {name: _ask(name) for name in [*names, *(_installed() if wants_all else ())]}


def asked(to: Sequence[str] | None) -> list[str]:
    """Return the exporters that `--to` named, each once."""
    return list(dict.fromkeys(to or [DEFAULT]))


def own_of(parser: argparse.ArgumentParser, args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of *parser*, by name."""
    names = [action.dest for action in parser._actions]  # noqa: SLF001 -- there is no public list
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def whose(left: Sequence[str], args: argparse.Namespace) -> str:
    """Name the exporter that declares one of the unknown arguments; empty: there is none."""
    for name in args.declared:
        plugins.load("exporter", name)
    for name in _installed():
        flags = () if name in args.declared else _ask(name)._option_string_actions  # noqa: SLF001
        for flag in (word.partition("=")[0] for word in left):
            if flag in flags:
                return (
                    f"argument {flag}: belongs to exporter {name!r}, which --to does not name; "
                    f"use --to {','.join([*asked(args.to), name])}"
                )
    return ""


def _asked(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the exporters that `--to` names, and whether help is wanted."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--to", action="extend", type=comma_names)
    parser.add_argument("-h", "--help", action="store_true")
    try:
        args, _ = parser.parse_known_args(words)
    except argparse.ArgumentError:  # the parser of the command reports it
        return [], False
    return asked(args.to), args.help


def _installed() -> Iterator[str]:
    return (offer.name for offer in offers() if offer.kind == "exporter")


def _ask(name: str) -> argparse.ArgumentParser:
    """Let the exporter *name* declare its arguments; a broken one declares none here."""
    parser = argparse.ArgumentParser(add_help=False)
    with suppress(PluginError):  # reported when it is used
        arguments = getattr(plugins.load("exporter", name), "arguments", None)
        if arguments is not None:
            arguments(parser.add_argument_group(name))
    return parser
