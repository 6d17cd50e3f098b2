"""Plugins by name: found by entry point, loaded one by one; the only file that knows either.

One broken stranger breaks nothing else, because nothing but what the config names is imported.
"""

from __future__ import annotations

import difflib
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

import attrs
import pluggy

from rlprof.errors import PluginError
from rlprof.hookspecs import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["tool", "engine", "exporter"]

GROUPS: dict[Kind, str] = {
    "tool": "rlprof.tools",
    "engine": "rlprof.engines",
    "exporter": "rlprof.exporters",
}
"""Kind of plugin → its entry-point group; the entry's name is the word the config uses."""

KNOWN = {
    "torch": "rlprof-torch",
    "torch_memory": "rlprof-torch",
    "nsys": "rlprof-nsys",
    "npu": "rlprof-npu",
    "vllm": "rlprof-vllm",
    "sglang": "rlprof-sglang",
    "timeline": "rlprof-timeline",
    "report": "rlprof-timeline",
}
"""Name → the distribution that offers it, to say what to install."""

_registered: dict[tuple[Kind, str], type] = {}


@attrs.frozen
class Offer:
    """A plugin somebody offers: what can be known without importing it."""

    kind: Kind
    name: str
    distribution: str
    version: str
    requires: str
    """What it asks of core, as its distribution says: `rlprof>=0.1,<0.2`."""
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


def _installed(kind: Kind) -> Iterator[Offer]:
    for entry in metadata.entry_points(group=GROUPS[kind]):
        dist = entry.dist
        if dist is None:
            yield Offer(kind, entry.name, "?", "?", "", entry)
            continue
        needs = [need.replace(" ", "") for need in dist.requires or ()]
        core = next((need for need in needs if _dist_of(need) == "rlprof"), "")
        yield Offer(kind, entry.name, dist.metadata["Name"], dist.version, core, entry)


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
    except Exception as exc:
        raise PluginError(_misfit(offer, f"does not load: {type(exc).__name__}: {exc}")) from exc
    check(kind, plugin, offer)
    return plugin  # type: ignore[no-any-return]


def check(kind: Kind, plugin: Any, offer: Offer) -> None:
    """Raise PluginError unless *plugin* is a class that implements hooks of *kind*, rightly."""
    if not isinstance(plugin, type):
        raise PluginError(_misfit(offer, f"is {plugin!r} where a class is needed"))
    try:
        hooks(kind, plugin())
    except Exception as exc:
        if isinstance(exc, PluginError):
            raise PluginError(_misfit(offer, str(exc))) from exc
        raise PluginError(_misfit(offer, f"cannot be made: {type(exc).__name__}: {exc}")) from exc


def hooks(kind: Kind, instance: Any) -> Any:
    """Return the callable hooks of *instance* alone, so that it fails and hangs alone."""
    manager = pluggy.PluginManager("rlprof")
    manager.add_hookspecs(KINDS[kind])
    try:
        manager.register(instance, name=type(instance).__name__)
        manager.check_pending()
    except pluggy.PluginValidationError as exc:
        text = " ".join(str(exc).split()).replace("<Plugin ", "").replace("'rlprof'", "")
        raise PluginError(f"implements a hook wrongly: {text}") from exc
    if not manager.get_hookcallers(instance):
        names = ", ".join(name for name in vars(KINDS[kind]) if not name.startswith("_"))
        raise PluginError(
            f"implements no hook; mark its methods with @rlprof.hookimpl (a {kind} has {names})"
        )
    return manager.hook


def _misfit(offer: Offer, what: str) -> str:
    core = metadata.version("rlprof")
    asks = offer.requires and f"; this is rlprof {core}: install versions that fit each other"
    return f"{offer} {what}{asks}"


def _not_installed(kind: Kind, name: str) -> str:
    names = sorted({offer.name for offer in offers() if offer.kind == kind})
    there = f" (installed: {', '.join(names) or 'none'})"
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"{kind} {name!r} is not installed; did you mean {close[0]!r}?{there}"
    other = [offer.kind for offer in offers() if offer.name == name]
    if other:
        return f"{name!r} is {_a(other[0])}, not {_a(kind)}{there}"
    if name in KNOWN:
        return f"{kind} {name!r} is not installed; pip install {KNOWN[name]}{there}"
    close = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]!r} (pip install {KNOWN[close[0]]})?" if close else ""
    return f"{kind} {name!r} is not installed{hint}{there}"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
