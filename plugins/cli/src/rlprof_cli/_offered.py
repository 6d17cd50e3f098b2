"""Commands of other distributions; they are looked for only if *argv* names none of ours."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.errors import PluginError, raised
from rlprof_cli.offers import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def wanted(argv: Sequence[str], own: Collection[str]) -> bool:
    """Whether *argv* may name a command that is not among our *own*, or asks for the list."""
    word = next((one for one in argv if not one.startswith("-")), None)
    if word is None:
        return "--version" not in argv
    return word not in own or word == "completion"  # it completes all of them


def add_offered(subparsers: Any, own: Collection[str]) -> None:
    """Let each command describe itself; a broken one says why when it is called."""
    offered: dict[str, list[Any]] = {}
    for entry in plugins.entries(COMMANDS):
        if entry.name not in own:
            offered.setdefault(entry.name, []).append(entry)
    for name, entries in sorted(offered.items()):
        try:
            _add(subparsers, name, entries)
        except (Exception, SystemExit) as exc:  # a stranger's code
            why = _does_not_load(name, entries[0], exc)
            if name not in subparsers.choices:
                stub = subparsers.add_parser(name, help="does not load")
                stub.add_argument("rest", nargs=argparse.REMAINDER)
            subparsers.choices[name].set_defaults(run=partial(_refuse, why))


def _add(subparsers: Any, name: str, entries: Sequence[Any]) -> None:
    if len(entries) > 1:
        who = " and ".join(sorted(_distribution(entry) for entry in entries))
        raise PluginError(f"command {name!r} is offered by {who}; uninstall one")
    entries[0].load().add(subparsers)
    if name not in subparsers.choices:
        raise PluginError(f"command {name!r} ({_distribution(entries[0])}) adds no {name!r}")


def _refuse(why: str, _: argparse.Namespace) -> int:
    """Stand for a command that cannot run."""
    raise PluginError(why)


def _does_not_load(name: str, entry: Any, exc: BaseException) -> str:
    if isinstance(exc, PluginError):
        return str(exc)
    who = _distribution(entry)
    return f"command {name!r} ({who}) does not load: {raised(exc)}; repair or uninstall {who}"


def _distribution(entry: Any) -> str:
    return "?" if entry.dist is None else str(entry.dist.metadata["Name"])
