"""Commands of other distributions; they are looked for only if *argv* names none of ours."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rlprof.errors import PluginError, one_line
from rlprof_cli.offers import commands

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
    for entry in commands():
        if entry.name not in own:
            offered.setdefault(entry.name, []).append(entry)
    for name, entries in sorted(offered.items()):
        try:
            _add(subparsers, name, entries)
        except (Exception, SystemExit) as exc:  # a stranger's code
            why = (
                str(exc) if isinstance(exc, PluginError) else _does_not_load(name, entries[0], exc)
            )
            if name not in subparsers.choices:
                stub = subparsers.add_parser(name, help="does not load")
                stub.add_argument("rest", nargs=argparse.REMAINDER)
            subparsers.choices[name].set_defaults(run=_Refusal(why))


def _add(subparsers: Any, name: str, entries: Sequence[Any]) -> None:
    if len(entries) > 1:
        who = " and ".join(sorted(_distribution(entry) for entry in entries))
        raise PluginError(f"command {name!r} is offered by {who}; uninstall one")
    entries[0].load().add(subparsers)
    if name not in subparsers.choices:
        raise PluginError(f"command {name!r} ({_distribution(entries[0])}) adds no {name!r}")


class _Refusal:
    """Stands for a command that cannot run."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __call__(self, _: argparse.Namespace) -> int:
        raise PluginError(self._why)


def _does_not_load(name: str, entry: Any, exc: BaseException) -> str:
    who = _distribution(entry)
    reason = one_line(f"{type(exc).__name__}: {exc}", longest=500)
    return f"command {name!r} ({who}) does not load: {reason}; repair or uninstall {who}"


def _distribution(entry: Any) -> str:
    return "?" if entry.dist is None else str(entry.dist.metadata["Name"])
