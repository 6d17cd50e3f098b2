"""Plugins by name: found by entry point, loaded one by one; the only file that knows either.

One broken stranger breaks nothing else, because nothing but what the config names is imported.
"""

from __future__ import annotations

import re
from importlib import metadata
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import contract
from rlprof.errors import PluginError, closest, raised, shown, with_article

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind = contract.Kind
hooks = contract.hooks

GROUPS: dict[Kind, str] = {
    "tool": "rlprof.tools",
    "engine": "rlprof.engines",
    "exporter": "rlprof.exporters",
    "listener": "rlprof.listeners",
}
"""Kind of plugin → its entry-point group; the entry's name is the word the config uses."""

COMMANDS = "rlprof.commands"
"""The entry-point group of commands; the entry's name is the command, its object a module with
`add(subparsers)`, as those in `rlprof_cli` are."""

KNOWN: dict[tuple[Kind, str], str] = {
    ("tool", "torch"): "rlprof-torch",
    ("tool", "torch_memory"): "rlprof-torch",
    ("tool", "nsys"): "rlprof-nsys",
    ("tool", "npu"): "rlprof-npu",
    ("exporter", "timeline"): "rlprof-timeline",
    ("exporter", "parquet"): "rlprof-report[parquet]",
    ("engine", "vllm"): "rlprof-vllm",
    ("engine", "sglang"): "rlprof-sglang",
    ("listener", "live"): "rlprof-live",
}
"""Kind and name → the distribution that offers it, to say what to install."""

_CORE = ("rlprof-core", "rlprof")
"""What a plugin may ask for: core, or the product, whose version is the same."""

_EXTRA = re.compile(r";.*\bextra==")
"""Marks what is asked only with an extra of the distribution: its tests, for one."""

_registered: dict[tuple[Kind, str], type] = {}


@attrs.frozen
class Offer:
    """A plugin somebody offers: what can be known without importing it."""

    kind: Kind
    name: str
    distribution: str
    version: str
    requires: str
    """What it asks of core, as its distribution says: `rlprof-core>=0.1,<0.2`."""
    entry: metadata.EntryPoint | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        if self.entry is None:
            return f"{self.kind} {self.name!r} (registered by hand)"
        asks = f", which asks for {self.requires}" if self.requires else ""
        return f"{self.kind} {self.name!r} ({self.distribution} {self.version}{asks})"


def register(kind: Kind, name: str, plugin: type) -> None:
    """Offer *plugin* under *name* in this process, without packaging it.

    It goes before an installed one of that name. A class of the script itself (`__main__`) is
    exported inside the training process, for no other can import it; put it into a module of
    its own to have that done elsewhere.
    """
    if kind not in GROUPS:
        raise PluginError(f"register: no kind {kind!r}; choose one of {', '.join(GROUPS)}")
    _registered[kind, name] = plugin


def offers() -> list[Offer]:
    """List all that is installed or registered, without importing any of it."""
    hand = [Offer(kind, name, "", "", "") for kind, name in _registered]
    installed = [offer for kind in GROUPS for offer in _installed(kind)]
    return sorted(hand + installed, key=lambda offer: (list(GROUPS).index(offer.kind), offer.name))


def kinds(name: str) -> list[Kind]:
    """List the kinds that are installed or registered under *name*, without importing any."""
    return list(dict.fromkeys(offer.kind for offer in offers() if offer.name == name))


def commands() -> list[metadata.EntryPoint]:
    """List the commands that are installed, without importing any of them."""
    return _entries(COMMANDS)


def _entries(group: str) -> list[metadata.EntryPoint]:
    """List the entry points of *group*, also where some `entry_points.txt` cannot be read."""
    try:
        return list(metadata.entry_points(group=group))
    except Exception:  # somebody's file; importlib gives up on all of them
        found: dict[str, list[metadata.EntryPoint]] = {}
        for dist in metadata.distributions():
            try:
                found.setdefault(dist.metadata["Name"], list(dist.entry_points.select(group=group)))
            except Exception:  # noqa: S112 -- the stranger itself
                continue
        return [entry for entries in found.values() for entry in entries]


def _installed(kind: Kind) -> Iterator[Offer]:
    for entry in _entries(GROUPS[kind]):
        dist = entry.dist
        if dist is None:
            yield Offer(kind, entry.name, "?", "?", "", entry)
            continue
        needs = [need.replace(" ", "") for need in dist.requires or ()]
        core = next(
            (need for need in needs if _dist_of(need) in _CORE and not _EXTRA.search(need)), ""
        )
        head = dist.metadata
        name = head["Name"] if "Name" in head else "?"  # noqa: SIM401 -- mypy knows no get in 3.10
        version = head["Version"] if "Version" in head else "?"  # noqa: SIM401
        yield Offer(kind, entry.name, name, version, core, entry)


def _dist_of(requirement: str) -> str:
    end = next((i for i, c in enumerate(requirement) if c in "<>=!~;[@("), len(requirement))
    return requirement[:end].lower()


def load(kind: Kind, name: str) -> type[Any]:
    """Return the class offered under *name*, or raise a PluginError that says what to do."""
    if (kind, name) in _registered:
        plugin = _registered[kind, name]
        check(kind, plugin, Offer(kind, name, "", "", ""))
        return plugin
    found = [offer for offer in _installed(kind) if offer.name == name]
    if not found:
        raise PluginError(_not_installed(kind, name))
    if len(found) > 1:
        who = " and ".join(f"{offer.distribution} {offer.version}" for offer in found)
        raise PluginError(f"{kind} {name!r} is offered by {who}; uninstall one")
    offer = found[0]
    try:
        plugin = offer.entry.load()  # type: ignore[union-attr]  # installed offers have one
    except (Exception, SystemExit) as exc:
        raise PluginError(_misfit(offer, f"does not load: {raised(exc)}", is_entry=True)) from exc
    check(kind, plugin, offer)
    return plugin  # type: ignore[no-any-return]


def listeners(names: Sequence[str] | None) -> dict[str, type[Any]]:
    """Load the listeners of these names, and `live` where it is offered; none if *names* is empty.

    None stands for no names of one's own.
    """
    if names is None or names:
        there = ("listener", "live") in _registered or any(
            one.name == "live" for one in _installed("listener")
        )
        names = list(dict.fromkeys([*(["live"] if there else []), *(names or ())]))
    return {name: load("listener", name) for name in names or ()}


def drives(name: str) -> bool:
    """Whether the tools of its role record inside the engine *name*; no, where it is not there."""
    try:
        return bool(getattr(load("engine", name), "drives", False))
    except PluginError:
        return False


def core_version() -> str:
    """Return the version of rlprof; where it is not installed, nothing."""
    try:
        return metadata.version("rlprof-core")
    except metadata.PackageNotFoundError:
        return ""


def check(kind: Kind, plugin: Any, offer: Offer) -> None:
    """Raise PluginError unless *plugin* is a class that implements hooks of *kind*, rightly."""
    if not isinstance(plugin, type):
        what = shown(plugin) if offer.entry is None else with_article(type(plugin).__name__)
        raise PluginError(_misfit(offer, f"is {what} where a class is needed", is_entry=True))
    try:
        contract.check(kind, plugin)
    except PluginError as exc:
        raise PluginError(_misfit(offer, str(exc))) from exc


def _misfit(offer: Offer, what: str, *, is_entry: bool = False) -> str:
    """Say what is wrong with a plugin, and what to do; *is_entry*: its entry point may be wrong."""
    if offer.entry is None or contract.MIGRATION in what:  # which says what to do
        return f"{offer} {what}"
    entry = f"repair its entry point {offer.name} = {offer.entry.value!r}, or " if is_entry else ""
    if not offer.requires:
        return f"{offer} {what}; {entry}repair or uninstall {offer.distribution}"
    core = core_version() or "of an unknown version"
    return f"{offer} {what}; this is rlprof {core}; {entry}install versions that fit each other"


def _not_installed(kind: Kind, name: str) -> str:
    names = sorted({offer.name for offer in offers() if offer.kind == kind})
    there = f" (installed: {', '.join(names) or 'none'})"
    other = [offer.kind for offer in offers() if offer.name == name]
    other += [known for known, word in KNOWN if word == name]
    if (kind, name) in KNOWN:
        return f"{kind} {shown(name)} is not installed; pip install {KNOWN[kind, name]}{there}"
    if other:
        is_meant = (kind, other[0]) == ("tool", "engine")
        advice = f"; write roles: {{rollout: {{engine: {name}}}}}" if is_meant else ""
        return f"{shown(name)} is {with_article(other[0])}, not {with_article(kind)}{there}{advice}"
    hint = closest(name, names) or closest(name, [word for which, word in KNOWN if which == kind])
    return f"{kind} {shown(name)} is not installed{hint}{there}"
