"""Plugins by name: found by entry point, loaded one by one; the only file that knows either.

One broken stranger breaks nothing else, because nothing but what the config names is imported.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib import metadata
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Literal, get_args

import attrs
import pluggy

from rlprof.errors import PluginError, closest, raised, shown
from rlprof.hookspecs import KINDS
from rlprof.types import RunsOn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind = Literal["tool", "engine", "exporter", "listener"]

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
    """Load the listeners of these names; without names, `live` where it is offered."""
    if names is None:
        there = ("listener", "live") in _registered or any(
            one.name == "live" for one in _installed("listener")
        )
        names = ("live",) if there else ()
    return {name: load("listener", name) for name in names}


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
        what = shown(plugin) if offer.entry is None else _a(type(plugin).__name__)
        raise PluginError(_misfit(offer, f"is {what} where a class is needed", is_entry=True))
    options, claims = getattr(plugin, "Options", None), getattr(plugin, "claims", {})
    if options is not None and not (isinstance(options, type) and attrs.has(options)):
        raise PluginError(_misfit(offer, f"has Options {shown(options)} that are no attrs class"))
    runs_on = inspect.getattr_static(plugin, "runs_on", "thread")
    if isinstance(runs_on, str) and runs_on not in get_args(RunsOn):
        choice = ", ".join(get_args(RunsOn))
        raise PluginError(_misfit(offer, f"has runs_on {shown(runs_on)}; choose one of {choice}"))
    if not isinstance(claims, Mapping):
        raise PluginError(_misfit(offer, f"has claims {shown(claims)} that are no mapping"))
    try:
        hooks(kind, plugin())
    except PluginError as exc:
        raise PluginError(_misfit(offer, str(exc))) from exc
    except Exception as exc:
        raise PluginError(_misfit(offer, f"cannot be made: {raised(exc)}")) from exc


class _Manager(pluggy.PluginManager):
    """Looks at methods only: a property may have no answer before `configure`."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
        found = inspect.getattr_static(plugin, name, None)
        if not isinstance(found, (FunctionType, MethodType, staticmethod, classmethod)):
            return None
        return super().parse_hookimpl_opts(plugin, name)


def hooks(kind: Kind, instance: Any) -> Any:
    """Return the callable hooks of *instance* alone, so that it fails and hangs alone."""
    manager = _Manager("rlprof")
    manager.register(instance, name=type(instance).__name__)
    _compare(kind, instance, manager)
    try:
        manager.add_hookspecs(KINDS[kind])
    except pluggy.PluginValidationError as exc:
        raise PluginError(f"implements a hook wrongly: {' '.join(str(exc).split())}") from exc
    return manager.hook


def _compare(kind: Kind, instance: Any, manager: pluggy.PluginManager) -> None:
    """Raise PluginError where the hooks differ from the spec, in words for who writes a plugin."""
    spec = {
        name: [arg for arg in inspect.signature(hook).parameters if arg != "self"]
        for name, hook in vars(KINDS[kind]).items()
        if not name.startswith("_")
    }
    has = f"({_a(kind)} has {', '.join(spec)})"
    callers = manager.get_hookcallers(instance) or []
    for caller in callers:
        if caller.name not in spec:
            hint = closest(caller.name, spec)
            raise PluginError(f"marks {caller.name!r}, which is no hook{hint} {has}")
        hook = caller.get_hookimpls()[0]
        for arg in hook.argnames:
            if arg not in spec[caller.name]:
                hint, args = closest(arg, spec[caller.name]), ", ".join(spec[caller.name])
                raise PluginError(
                    f"takes {arg!r} in {caller.name}, which is not given{hint} (there are: {args})"
                )
        for arg in hook.kwargnames:
            if arg in spec[caller.name]:
                raise PluginError(
                    f"has a default for {arg!r} in {caller.name}, which then is never given; "
                    "take the default away"
                )
    if not callers:
        raise PluginError(f"implements no hook; mark its methods with @rlprof.hookimpl {has}")
    for name in spec:
        if name in {caller.name for caller in callers}:
            continue
        method = inspect.getattr_static(instance, name, None)
        if isinstance(method, FunctionType) and method is not vars(KINDS[kind])[name]:
            raise PluginError(
                f"has a method {name!r} that is never called; mark it with @rlprof.hookimpl"
            )


def _misfit(offer: Offer, what: str, *, is_entry: bool = False) -> str:
    """Say what is wrong with a plugin, and what to do; *is_entry*: its entry point may be wrong."""
    if offer.entry is None:
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
        return f"{shown(name)} is {_a(other[0])}, not {_a(kind)}{there}{advice}"
    hint = closest(name, names) or closest(name, [word for which, word in KNOWN if which == kind])
    return f"{kind} {shown(name)} is not installed{hint}{there}"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
