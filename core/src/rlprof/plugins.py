"""Plugins: found by entry point, loaded one by one, checked against the contract, each isolated.

A broken plugin breaks nothing else, because only the plugins that the config names are imported.
`rlprof_cli.offers` lists the installed ones; `rlprof_cli.contract` tells authors more.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, get_args

import pluggy

from rlprof.errors import PluginError, raised, shown, with_article
from rlprof.hookspecs import Recorder
from rlprof.listenerspecs import Listener
from rlprof.types import RunsOn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Kind = Literal["tool", "engine", "exporter", "listener"]

GROUPS: dict[Kind, str] = {kind: f"rlprof.{kind}s" for kind in get_args(Kind)}
"""Kind of plugin → its entry-point group; the entry's name is the word the config uses."""

_MOVED = ("cautions", "misfits", "capabilities", "who_records", "within")
"""Attributes of classes in the earlier contract; `advise` returns their content now."""
_READY = ("runs_on", "loop")
"""Properties in the earlier contract."""

_registered: dict[tuple[Kind, str], type] = {}


def spec_of(kind: Kind) -> type:
    """Return the class with the hooks of *kind*."""
    if kind == "exporter":
        from rlprof.distributions import load

        return load("rlprof_run.exporterspecs", asked="exporter").Exporter  # type: ignore[no-any-return]
    return Listener if kind == "listener" else Recorder


def register(kind: Kind, name: str, plugin: type) -> None:
    """Offer *plugin* under *name* in this process, without packaging it.

    It takes precedence over an installed plugin of that name. If the class is part of the script
    (`__main__`), its exports run inside the training process, because no other process can import
    it; move it into a module to export elsewhere.
    """
    if kind not in GROUPS:
        raise PluginError(f"register: no kind {kind!r}; choose one of {', '.join(GROUPS)}")
    _registered[kind, name] = plugin


def names(kind: Kind) -> list[str]:
    """List the installed or registered plugins of *kind*, without importing them."""
    installed = {entry.name for entry in entries(GROUPS[kind])}
    return sorted(installed | {name for of, name in _registered if of == kind})


def load(kind: Kind, name: str) -> type[Any]:
    """Return the class offered under *name*, or raise a PluginError that says what to do."""
    if (kind, name) in _registered:
        plugin, whose, repair = _registered[kind, name], "registered by hand", ""
    else:
        entry = _entry(kind, name)
        dist = entry.dist
        whose = f"{dist.name} {dist.version}" if dist else "of no distribution"
        here = f"this is rlprof {core_version()}"
        repair = f"; {here}: repair {entry.value!r}, or install a version that fits"
        try:
            plugin = entry.load()
        except (Exception, SystemExit) as exc:
            problem = f"does not load: {raised(exc)}{repair}"
            raise PluginError(f"{kind} {name!r} ({whose}) {problem}") from exc
    try:
        check(kind, name, plugin)
    except PluginError as exc:
        raise PluginError(f"{kind} {name!r} ({whose}) {exc}{repair}") from exc
    return plugin


def entries(group: str) -> list[metadata.EntryPoint]:
    """List the entry points of *group*; raise PluginError that names a damaged distribution."""
    try:
        return list(metadata.entry_points(group=group))
    except Exception as exc:  # for one broken file, importlib gives up on all of them
        where = ", ".join(_damaged()) or "some distribution"
        why = f"its entry_points.txt cannot be read ({raised(exc)})"
        raise PluginError(f"{where}: {why}; install it again, or uninstall it") from exc


def _damaged() -> Iterator[str]:
    for dist in metadata.distributions():
        try:
            dist.entry_points  # noqa: B018 -- parsed when asked for
        except Exception:
            yield str(dist.metadata["Name"])


def _entry(kind: Kind, name: str) -> metadata.EntryPoint:
    """Return the entry point under which one distribution offers the plugin."""
    found = [entry for entry in entries(GROUPS[kind]) if entry.name == name]
    if len(found) > 1:
        who = " and ".join(f"{one.dist.name} {one.dist.version}" for one in found if one.dist)
        raise PluginError(f"{kind} {name!r} is offered by {who}; uninstall one")
    if found:
        return found[0]
    from rlprof.distributions import why_missing

    raise PluginError(why_missing(kind, name, {of: names(of) for of in GROUPS}))


def listeners(asked: Sequence[str] | None) -> dict[str, type[Any]]:
    """Load the listeners of these names, and `live` if it is installed; none if *asked* is empty.

    None: the config names no listeners.
    """
    if asked is not None and not asked:
        return {}
    usual = ["live"] if "live" in names("listener") else []
    return {name: load("listener", name) for name in dict.fromkeys([*usual, *(asked or ())])}


def core_version() -> str:
    """Return the version of rlprof; empty if it is not installed."""
    try:
        return metadata.version("rlprof-core")
    except metadata.PackageNotFoundError:
        return ""


def check(kind: Kind, name: str, plugin: Any) -> None:
    """Raise PluginError unless *plugin* is a class that implements hooks of *kind*, as pluggy sees.

    Other faults are only for its author: `rlprof plugins` and the kit report them.
    """
    if not isinstance(plugin, type):
        raise PluginError(f"is {with_article(type(plugin).__name__)} where a class is needed")
    if not isinstance(getattr(plugin, "claims", {}), Mapping):
        raise PluginError("has claims that are not a mapping")
    try:
        held = _Held(plugin())
    except Exception as exc:
        raise PluginError(f"cannot be made: {raised(exc)}") from exc
    _refuse_earlier(kind, plugin, held)
    alone = pluggy.PluginManager("rlprof")
    alone.add_hookspecs(spec_of(kind))
    try:
        alone.register(held, name)
        alone.check_pending()
    except pluggy.PluginValidationError as exc:
        problem = " ".join(str(exc).split())
        raise PluginError(f"implements a hook wrongly for {with_article(kind)}: {problem}") from exc
    if not vars(held):
        has = ", ".join(hook for hook in vars(spec_of(kind)) if not hook.startswith("_"))
        raise PluginError(
            f"implements no hook; mark its methods with @rlprof.hookimpl ({with_article(kind)} "
            f"has {has})"
        )


def _refuse_earlier(kind: Kind, plugin: type[Any], held: _Held) -> None:
    """Raise PluginError for a plugin that was written for the contract before this one."""
    declared = {name: inspect.getattr_static(plugin, name, None) for name in (*_MOVED, *_READY)}
    old = [f"{name} is now in advise" for name in _MOVED if declared[name]]
    old += [
        f"{name} is now in the Ready that configure returns"
        for name in _READY
        if isinstance(declared[name], property)
    ]
    if kind == "exporter":
        old = ["export is now render"] if hasattr(held, "export") else []
    if old:
        words = f"is written for an earlier rlprof: {', '.join(old)}"
        raise PluginError(f"{words}; follow Migration in rlprof's CHANGELOG.md")
    runs_on = declared["runs_on"]
    if runs_on not in (None, *get_args(RunsOn)):
        choice = ", ".join(get_args(RunsOn))
        raise PluginError(f"has runs_on {shown(runs_on)}; choose one of {choice}")


class _Held:
    """A plugin as the manager holds it: its marked methods.

    Two plugins may compare as equal, and pluggy refuses that; a property may have no value yet.
    """

    def __init__(self, plugin: Any) -> None:
        for name in dir(plugin):
            method = inspect.getattr_static(plugin, name, None)
            if hasattr(getattr(method, "__func__", method), "rlprof_impl"):
                setattr(self, name, getattr(plugin, name))

    def __repr__(self) -> str:
        return "it"


class Hooks:
    """The hooks of one plugin. Each gets the arguments it names; a missing hook returns None."""

    def __init__(self, found: Mapping[str, pluggy.HookImpl]) -> None:
        self._found = found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda **given: self.bound(name, **given)()

    def bound(self, name: str, /, **given: Any) -> Callable[[], Any]:
        """Return the hook with its arguments, ready to be called."""
        hook = self._found.get(name)
        if hook is None:
            return lambda: None
        return partial(hook.function, *map(given.get, hook.argnames))


def hooks(plugin: Any, manager: pluggy.PluginManager | None = None) -> Hooks:
    """Register *plugin*, which was checked, with *manager* or a new one; return only its hooks.

    A session has one manager for all its plugins.
    """
    among, held = manager or pluggy.PluginManager("rlprof"), _Held(plugin)
    among.register(held)
    callers = among.get_hookcallers(held) or ()
    return Hooks(
        {
            caller.name: hook
            for caller in callers
            for hook in caller.get_hookimpls()
            if hook.plugin is held
        }
    )
