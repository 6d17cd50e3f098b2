"""The plugins a config names: loaded, their options structured, their claims compared.

Needs only the plugins of the roles it is asked for: a training node has no rollout engine.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.config._structure import BAD, Faults, join, structure
from rlprof.errors import PluginError, RlprofError, one_line, raised, shown
from rlprof.types import Launch, Target, Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlprof.config._values import Config, Role


_Loaded = tuple[plugins.Kind, str, type[Any]]


@attrs.frozen
class NoOptions:
    """The options of a plugin that has none."""


@attrs.frozen
class ToolUse:
    """One tool, or the engine, as one role uses it."""

    name: str
    kind: plugins.Kind
    plugin: type[Any]
    options: Any
    """A value of the plugin's `Options`."""
    asked: Mapping[str, Any]
    """The same as plain data, as the config gives them."""
    claims: Mapping[str, str]
    launch: Launch
    """What a process with this tool must be born with."""
    inside: tuple[ToolUse, ...] = ()
    """Of an engine: the tools that record its own processes."""

    @property
    def asked_inside(self) -> dict[str, Mapping[str, Any]]:
        """What is asked of each of these."""
        return {use.name: use.asked for use in self.inside}

    def asks_as(self, other: ToolUse) -> bool:
        """Whether the same is asked of it and *other*."""
        return self.asked == other.asked and self.asked_inside == other.asked_inside


def use_tools(
    config: Config, roles: Iterable[str] | None, faults: Faults, rank: int = 0
) -> dict[str, tuple[ToolUse, ...]]:
    """Load what *rank* of *roles* (None: all) uses and add all that is wrong to *faults*.

    The tools of a role come in the order of the config, its engine last.
    """
    names = config.roles if roles is None else [role for role in roles if role in config.roles]
    before = Faults(dict(faults.found))
    _check_places(config, faults)
    return {role: _of_role(config, Target(role, rank, rank + 1), faults, before) for role in names}


def _check_places(config: Config, faults: Faults) -> None:
    """Add options that stand under `tools` and are an engine's, or the other way round."""
    used = {name for role in config.roles for name in config.tools_inside(role)}
    engines = {role.engine for role in config.roles.values()}
    for kind, other, names in (
        ("tool", "engine", config.tools.keys() - used),
        ("engine", "tool", config.engines.keys() - engines),
    ):
        for name in sorted(names):
            if plugins.kinds(name) == [other]:
                what = f"{shown(name)} is {'an' if other == 'engine' else 'a'} {other}"
                message = f"{what}; its options stand under {other}s"
                faults.add(join(f"{kind}s", name), message)


def _of_role(config: Config, target: Target, faults: Faults, before: Faults) -> tuple[ToolUse, ...]:
    role = target.role
    here = join("roles", role)
    own = config.roles[role]
    later = Faults()  # of the engine, which is named after the tools
    engine = None if own.engine is None else _load("engine", own.engine, own, here, later)
    drives = bool(getattr(engine, "drives", False))
    names = config.tools_inside(role) if drives else config.tools_of(role)
    found = {name: _load("tool", name, own, here, faults) for name in names}
    loaded = {name: plugin for name, plugin in found.items() if plugin is not None}
    for path, messages in later.found.items():
        for message in messages:
            faults.add(path, message)
    _compare_claims(loaded, here, faults)
    wanted: list[_Loaded] = [("tool", name, plugin) for name, plugin in loaded.items()]
    if own.engine is not None and engine is not None:
        wanted.append(("engine", own.engine, engine))
    uses: list[ToolUse] = []
    for one in wanted:
        workers = Workers({use.name: use.asked for use in uses} if drives else {})
        use = _use(config, target, one, faults, before, workers=workers)
        if use is not None:
            uses.append(use)
    try:
        whole = merge_launches({use.name: use.launch for use in uses})
    except ValueError as exc:
        faults.add(here, str(exc))
        return tuple(uses)
    if drives and uses and uses[-1].kind == "engine":
        return (attrs.evolve(uses[-1], launch=whole, inside=tuple(uses[:-1])),)
    return () if drives else tuple(uses)


def _load(kind: plugins.Kind, name: str, own: Role, here: str, faults: Faults) -> type[Any] | None:
    try:
        return plugins.load(kind, name)
    except PluginError as exc:
        is_own = kind == "engine" or own.tool is not None
        faults.add(join(here, kind) if is_own else kind, str(exc))
        return None


def _claims(plugin: type[Any]) -> dict[str, str]:
    return dict(getattr(plugin, "claims", {}))


def _compare_claims(loaded: Mapping[str, type[Any]], here: str, faults: Faults) -> None:
    for (one, first), (other, second) in combinations(loaded.items(), 2):
        claims = _claims(second)
        for claim in sorted(claims.keys() & _claims(first).keys()):
            faults.add(
                here,
                f"tools {one!r} and {other!r} both need {claim} (one per {claims[claim]}); "
                "give them to different runs or roles",
            )


def _places(role: str, kind: plugins.Kind) -> tuple[str, str]:
    """Name where the options of plugins stand: for every role, and for this one."""
    return f"{kind}s", join(join("roles", role), "options")


def _use(
    config: Config,
    target: Target,
    loaded: _Loaded,
    faults: Faults,
    before: Faults,
    *,
    workers: Workers,
) -> ToolUse | None:
    """Structure the options of one plugin for one role, and ask what it needs from birth."""
    kind, name, plugin = loaded
    role = target.role
    general = (config.tools if kind == "tool" else config.engines).get(name, {})
    special = config.roles[role].options.get(name, {})
    asked = {**general, **special}
    places = _places(role, kind)
    everywhere, here = (join(place, name) for place in places)
    for given, place in ((general, everywhere), (special, here)):
        _check_by_itself(plugin, given, place, faults)
    if any(place in before.found or before.below(join(place, name)) for place in places):
        return None  # what is missing now may stand in what is broken
    own = Faults()
    options = options_of(plugin, asked, own)
    if not own and options is not BAD:
        _check_within(plugin, options, asked, config, own)
    bad = own or options is BAD
    given = {"handle": None, "workers": workers} if kind == "engine" else {}
    launch = Launch() if bad else _launch(kind, plugin, target, options, own, given=given)
    for path, messages in own.found.items():
        is_special = _is_of(path, special) or (special and not _is_of(path, general))
        base = here if is_special else everywhere
        for message in messages:
            faults.add(join(base, path) if path else base, message)
    return None if own else ToolUse(name, kind, plugin, options, asked, _claims(plugin), launch)


def _check_within(
    plugin: type[Any], options: Any, asked: Mapping[str, Any], config: Config, faults: Faults
) -> None:
    """Report options that exceed a limit of the run; defaults are never reported."""
    for option, limit in getattr(plugin, "within", {}).items():
        most, got = getattr(config.limits, limit), getattr(options, option)
        if option in asked and got >= most:
            faults.add(option, f"must be less than limits.{limit}, {most:g}; got {got:g}")


def _check_by_itself(
    plugin: type[Any], given: Mapping[str, Any], place: str, faults: Faults
) -> None:
    """Add what is wrong with each value of *given*, also with one that a role overrides."""
    own = Faults()
    options_of(plugin, given, own)
    for path, messages in own.found.items():
        for message in messages if _is_of(path, given) else ():
            faults.add(join(place, path), message)


def options_of(plugin: type[Any], asked: Mapping[str, Any], faults: Faults) -> Any:
    """Structure *asked* into the plugin's `Options`, having added what is wrong to *faults*."""
    try:
        return structure(getattr(plugin, "Options", NoOptions), asked, path="", faults=faults)
    except Exception as exc:  # a stranger's class, before the run: told, not passed on
        return faults.add("", f"the plugin cannot read its options: {raised(exc)}")


def _is_of(path: str, options: Mapping[str, Any]) -> bool:
    """Whether *path* is one of *options*, or in one."""
    return any(path == key or path.startswith((f"{key}.", f"{key}[")) for key in options)


def _launch(
    kind: plugins.Kind,
    plugin: type[Any],
    target: Target,
    options: Any,
    faults: Faults,
    *,
    given: Mapping[str, Any],
) -> Launch:
    """Ask the plugin what it needs from birth; what it refuses is a fault of the config."""
    try:
        hook = plugins.hooks(kind, plugin())
        launch = hook.configure(place="launch", target=target, options=options, **given)
    except RlprofError as exc:
        faults.add("", one_line(exc, longest=500))
    except (Exception, SystemExit) as exc:  # a stranger's code, before the run: told, not passed on
        faults.add("", f"configure raised {raised(exc)}")
    else:
        if isinstance(launch, Launch):
            return launch
        if launch is not None:
            faults.add("", f"configure returned {shown(launch)}, not a Launch or nothing")
    return Launch()


def merge_launches(launches: Mapping[str, Launch]) -> Launch:
    """Make one Launch of those of several plugins; raise ValueError where two want one key."""
    merged: dict[str, dict[str, Any]] = {"env": {}, "engine_args": {}, "runtime_env": {}}
    wanted: dict[tuple[str, str], str] = {}
    prefix: tuple[str, ...] = ()
    for name, launch in launches.items():
        prefix += launch.argv_prefix
        for field, values in merged.items():
            for key, value in getattr(launch, field).items():
                if values.get(key, value) != value:
                    who = wanted[field, key]
                    raise ValueError(
                        f"{who!r} and {name!r} want {field} {key!r} to be "
                        f"{shown(values[key])} and {shown(value)}; use one of them"
                    )
                values[key] = value
                wanted[field, key] = name
    return Launch(argv_prefix=prefix, **merged)
