"""Holds a plugin to the contract, and calls its hooks: each plugin alone.

A session registers its plugins with one manager of pluggy, which knows all hooks.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import attrs
import pluggy

from rlprof.errors import PluginError, closest, raised, shown, with_article
from rlprof.hookspecs import OF_ENGINES, Exporter, Recorder
from rlprof.listenerspecs import Listener
from rlprof.types import RunsOn

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["tool", "engine", "exporter", "listener"]

KINDS: dict[Kind, type] = {
    "tool": Recorder,
    "engine": Recorder,
    "exporter": Exporter,
    "listener": Listener,
}
"""Kind of plugin → its hooks."""

MIGRATION = "follow Migration in rlprof's CHANGELOG.md"
"""What to do with a plugin of an earlier contract."""

_RENAMED = {"export": "render", "export_files": "render_files"}
"""Hooks of exporters by the names they had."""

_READY = ("runs_on", "loop")
"""What properties said."""
_NEW_HOME = {
    **dict.fromkeys(("cautions", "misfits", "capabilities", "who_records", "within"), "advise"),
    **dict.fromkeys(_READY, "the Ready that configure returns"),
}
"""What classes declared, and what says it now."""


def new_manager() -> pluggy.PluginManager:
    """Make a manager that knows all hooks."""
    manager = pluggy.PluginManager("rlprof")
    for spec in dict.fromkeys(KINDS.values()):
        manager.add_hookspecs(spec)
    return manager


class Hooks:
    """The hooks of one plugin. Each is given what it names; one that is not there returns None."""

    def __init__(self, found: Mapping[str, pluggy.HookImpl]) -> None:
        self._found = found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._call, name)

    def bound(self, name: str, /, **given: Any) -> Callable[[], Any]:
        """Return the hook with its arguments, ready to be called."""
        hook = self._found.get(name)
        if hook is None:
            return lambda: None
        return partial(hook.function, *[given[arg] for arg in hook.argnames])

    def _call(self, name: str, /, **given: Any) -> Any:
        return self.bound(name, **given)()


def hooks(kind: Kind, plugin: Any, manager: pluggy.PluginManager | None = None) -> Hooks:
    """Register *plugin* with *manager*, or with one of its own, and return its hooks alone."""
    held = _Held(plugin)
    _compare(kind, plugin, held)
    among = new_manager() if manager is None else manager
    try:
        among.register(held)
    except pluggy.PluginValidationError as exc:
        raise PluginError(f"implements a hook wrongly: {' '.join(str(exc).split())}") from exc
    callers = among.get_hookcallers(held) or ()
    return Hooks(
        {
            caller.name: hook
            for caller in callers
            for hook in caller.get_hookimpls()
            if hook.plugin is held
        }
    )


class _Held:
    """A plugin as the manager holds it: its marked methods.

    Two plugins may compare as equal, which pluggy refuses; and a property may have no answer yet.
    """

    def __init__(self, plugin: Any) -> None:
        for name in dir(plugin):
            method = inspect.getattr_static(plugin, name, None)
            if hasattr(getattr(method, "__func__", method), "rlprof_impl"):
                setattr(self, name, getattr(plugin, name))


def arguments(kind: Kind) -> dict[str, list[str]]:
    """Return the hooks of *kind*, each with what it may name."""
    return {
        name: [
            arg
            for arg in inspect.signature(hook).parameters
            if arg != "self" and not (kind == "tool" and arg in OF_ENGINES)
        ]
        for name, hook in vars(KINDS[kind]).items()
        if not name.startswith("_")
    }


def check(kind: Kind, plugin: type[Any]) -> None:
    """Raise PluginError unless the class *plugin* implements hooks of *kind*, rightly."""
    options, claims = getattr(plugin, "Options", None), getattr(plugin, "claims", {})
    if options is not None and not (isinstance(options, type) and attrs.has(options)):
        raise PluginError(f"has Options {shown(options)} that are no attrs class")
    runs_on = inspect.getattr_static(plugin, "runs_on", "thread")
    if isinstance(runs_on, str) and runs_on not in get_args(RunsOn):
        choice = ", ".join(get_args(RunsOn))
        raise PluginError(f"has runs_on {shown(runs_on)}; choose one of {choice}")
    if not isinstance(claims, Mapping):
        raise PluginError(f"has claims {shown(claims)} that are no mapping")
    try:
        made = plugin()
    except Exception as exc:
        raise PluginError(f"cannot be made: {raised(exc)}") from exc
    _compare(kind, made, _Held(made))


def _compare(kind: Kind, plugin: Any, held: _Held) -> None:
    """Raise PluginError where the hooks differ from the contract, in an author's words."""
    known = arguments(kind)
    has = f"({with_article(kind)} has {', '.join(known)})"
    names = {method: vars(held)[method].rlprof_impl["specname"] or method for method in vars(held)}
    _refuse_earlier(kind, plugin, set(names.values()))
    for method, name in names.items():
        if name not in known:
            hint = closest(name, known)
            raise PluginError(f"marks {name!r}, which is no hook{hint} {has}")
        _compare_arguments(name, vars(held)[method], known[name])
    if not names:
        raise PluginError(f"implements no hook; mark its methods with @rlprof.hookimpl {has}")
    for name in (name for name in known if name not in names.values()):
        method = inspect.getattr_static(plugin, name, None)
        if callable(getattr(method, "__func__", method)) and method is not vars(KINDS[kind])[name]:
            raise PluginError(
                f"has a method {name!r} that is never called; mark it with @rlprof.hookimpl"
            )


def _compare_arguments(name: str, hook: Callable[..., Any], known: list[str]) -> None:
    for arg, parameter in inspect.signature(hook).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        has_default = parameter.default is not parameter.empty
        if has_default and arg in known:
            raise PluginError(
                f"has a default for {arg!r} in {name}, which then is never given; "
                "take the default away"
            )
        if not has_default and arg not in known:
            why = "only engines are given" if arg in OF_ENGINES else "is not given"
            hint, there = closest(arg, known), ", ".join(known)
            raise PluginError(f"takes {arg!r} in {name}, which {why}{hint} (there are: {there})")


def _refuse_earlier(kind: Kind, plugin: Any, names: set[str]) -> None:
    """Raise PluginError for a plugin that was written for the contract before this one."""
    old = []
    if kind == "exporter":
        old = [f"{name} is now {new}" for name, new in _RENAMED.items() if name in names]
    if kind in ("tool", "engine"):
        declared = {name: inspect.getattr_static(plugin, name, None) for name in _NEW_HOME}
        old = [
            f"{name} is now in {home}"
            for name, home in _NEW_HOME.items()
            if (isinstance(declared[name], property) if name in _READY else declared[name])
        ]
    if old:
        words = f"is written for an earlier rlprof: {', '.join(old)}"
        raise PluginError(f"{words}; {MIGRATION}")
