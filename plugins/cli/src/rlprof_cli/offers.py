"""The installed plugins and commands, found without importing them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from rlprof import plugins
from rlprof.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib import metadata

COMMANDS = "rlprof.commands"
"""The entry-point group of commands; the entry's name is the command, its object a module with
`add(subparsers)`, as those in `rlprof_cli` are."""


@attrs.frozen
class Offer:
    """A plugin that a distribution offers, or that was registered by hand."""

    kind: plugins.Kind
    name: str
    distribution: str
    version: str
    entry: metadata.EntryPoint | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        if self.entry is None:
            return f"{self.kind} {self.name!r} (registered by hand)"
        return f"{self.kind} {self.name!r} ({self.distribution} {self.version})"


def offers() -> list[Offer]:
    """List all installed or registered plugins, without importing them."""
    found = []
    for kind in plugins.GROUPS:
        installed = list(_installed(kind))
        by_hand = set(plugins.names(kind)) - {offer.name for offer in installed}
        installed += [Offer(kind, name, "", "") for name in by_hand]
        found += sorted(installed, key=lambda offer: offer.name)
    return found


def drives(name: str) -> bool:
    """Whether tools of its role record inside the engine *name*; False if it is not installed."""
    try:
        return bool(getattr(plugins.load("engine", name), "drives", False))
    except PluginError:
        return False


def has_option(name: str, option: str) -> bool:
    """Whether the tool or engine *name* is installed here, and has *option*."""
    kinds: tuple[plugins.Kind, ...] = ("tool", "engine")
    for kind in kinds:
        with suppress(PluginError):
            options = getattr(plugins.load(kind, name), "Options", object)
            if attrs.has(options) and option in attrs.fields_dict(options):
                return True
    return False


def _installed(kind: plugins.Kind) -> Iterator[Offer]:
    for entry in plugins.entries(plugins.GROUPS[kind]):
        dist = entry.dist
        if dist is None:
            yield Offer(kind, entry.name, "?", "?", entry)
            continue
        head = dist.metadata
        name = head["Name"] if "Name" in head else "?"  # noqa: SIM401 -- mypy knows no get in 3.10
        version = head["Version"] if "Version" in head else "?"  # noqa: SIM401
        yield Offer(kind, entry.name, name, version, entry)
