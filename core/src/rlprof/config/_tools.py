"""The plugins a config names: loaded, their options structured, their claims compared.

Needs only the plugins of the roles it is asked for: a training node has no rollout engine.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.answers import Advice
from rlprof.config._structure import BAD, Faults, join, structure
from rlprof.errors import CaptureError, PluginError, RlprofError, closest, one_line, raised, shown
from rlprof.types import Launch, Target, Workers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlprof.config._values import Config, Limits


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
    """The same as plain data, as in the config."""
    launch: Launch
    """The needs of a process with this tool at its start."""
    advice: tuple[Advice, ...] = ()
    """Its advice before the run."""
    inside: tuple[ToolUse, ...] = ()
    """For an engine: the tools that record its processes."""

    @property
    def asked_inside(self) -> dict[str, Mapping[str, Any]]:
        """The options of each of these."""
        return {use.name: use.asked for use in self.inside}

    def asks_as(self, other: ToolUse) -> bool:
        """Whether it has the same options as *other*."""
        return self.asked == other.asked and self.asked_inside == other.asked_inside


def use_tools(
    config: Config, roles: Iterable[str] | None, faults: Faults, rank: int = 0
) -> dict[str, tuple[ToolUse, ...]]:
    """Load the plugins of *rank* of *roles* (None: all), and add all faults to *faults*.

    The tools of a role come in the order of the config, its engine last.
    """
    names = config.roles if roles is None else [role for role in roles if role in config.roles]
    return {role: _of_role(config, Target(role, rank, rank + 1), faults) for role in names}


def check_names(config: Config, faults: Faults) -> None:
    """Add names under `tools` and `engines` that no role uses, if they look like mistakes.

    Options of a plugin that rests just now may stay.
    """
    tools = {name for role in config.roles for name in config.tools_inside(role)}
    engines = {role.engine for role in config.roles.values() if role.engine is not None}
    kinds: tuple[tuple[plugins.Kind, plugins.Kind, Any, set[str]], ...] = (
        ("tool", "engine", config.tools.keys(), tools),
        ("engine", "tool", config.engines.keys(), engines),
    )
    for kind, other, given, used in kinds:
        unused = given - used
        for name in sorted(unused - {*plugins.names(kind)}) if unused else ():
            hint = closest(name, sorted(used - given), cutoff=0.8)
            if name in plugins.names(other):
                faults.add(join(f"{kind}s", name), f"is no {kind}; put it under {other}s")
            elif hint:
                faults.add(join(f"{kind}s", name), f"no role uses it{hint}")


def options_of(plugin: type[Any], asked: Any, faults: Faults, *, path: str = "") -> Any:
    """Structure *asked* into the plugin's `Options`, after adding faults to *faults*."""
    return structure(getattr(plugin, "Options", NoOptions), asked, path=path, faults=faults)


def _of_role(config: Config, target: Target, faults: Faults) -> tuple[ToolUse, ...]:
    own, here = config.roles[target.role], join("roles", target.role)
    engine = None
    if own.engine is not None:
        engine = _load("engine", own.engine, join(here, "engine"), faults)
    drives = bool(getattr(engine, "drives", False))
    names = config.tools_inside(target.role) if drives else config.tools_of(target.role)
    place = "tool" if own.tool is None else join(here, "tool")
    loaded = {name: plugin for name in names if (plugin := _load("tool", name, place, faults))}
    _compare_claims(loaded, here, faults)
    uses = (_use(config, target, "tool", name, one, faults=faults) for name, one in loaded.items())
    tools = list(filter(None, uses))
    led = None
    if own.engine is not None and engine is not None:
        workers = Workers({use.name: use.asked for use in tools} if drives else {})
        led = _use(config, target, "engine", own.engine, engine, faults=faults, workers=workers)
    everyone = tools if led is None else [*tools, led]
    try:
        launch = merge_launches({use.name: use.launch for use in everyone})
    except ValueError as exc:
        faults.add(here, str(exc))
    else:
        if led is not None and drives:
            return (attrs.evolve(led, launch=launch, inside=tuple(tools)),)
    return tuple(everyone)


def _load(kind: plugins.Kind, name: str, place: str, faults: Faults) -> type[Any] | None:
    try:
        return plugins.load(kind, name)
    except PluginError as exc:
        faults.add(place, str(exc))
        return None


def _compare_claims(loaded: Mapping[str, type[Any]], here: str, faults: Faults) -> None:
    for (one, first), (other, second) in combinations(loaded.items(), 2):
        claims = getattr(second, "claims", {})
        for claim in sorted(claims.keys() & getattr(first, "claims", {}).keys()):
            faults.add(
                here,
                f"tools {one!r} and {other!r} both need {claim} (one per {claims[claim]}); "
                "give them to different runs or roles",
            )


def _use(
    config: Config,
    target: Target,
    kind: plugins.Kind,
    name: str,
    plugin: type[Any],
    *,
    faults: Faults,
    workers: Workers | None = None,
) -> ToolUse | None:
    """Structure the options of one plugin for one role, and ask for its needs at launch."""
    everywhere = join(f"{kind}s", name)
    here = join(join(join("roles", target.role), "options"), name)
    shared = (config.tools if kind == "tool" else config.engines).get(name, {})
    special = config.roles[target.role].options.get(name, {})
    asked, at = {**shared, **special}, here if special else everywhere
    cls = getattr(plugin, "Options", NoOptions)
    places = dict.fromkeys(shared.keys() - special.keys(), everywhere)
    try:
        options = structure(cls, asked, path=at, faults=faults, places=places)
    except Exception as exc:  # a stranger's class, before the run: reported as a fault
        options = faults.add(at, f"the plugin cannot read its options: {raised(exc)}")
    if options is BAD or faults.below(everywhere) or faults.below(here):
        return None
    tools = {} if workers is None else workers.tools
    advice = advice_of(plugin, options, config.limits, tools, asked=asked)
    for one in advice:
        if one.level == "fault":
            place = join(here if one.about in special else everywhere, one.about)
            faults.add(place if one.about else at, one_line(one.text, longest=500))
    try:
        hook = plugins.hooks(plugin())
        launch = hook.configure(place="launch", target=target, options=options, workers=workers)
    except RlprofError as exc:
        faults.add(at, one_line(exc, longest=500))
    except (Exception, SystemExit) as exc:  # a stranger's code: reported as a fault
        faults.add(at, f"configure raised {raised(exc)}")
    else:
        if launch is None or isinstance(launch, Launch):
            return ToolUse(name, kind, plugin, options, asked, launch or Launch(), advice)
        faults.add(at, f"configure returned {shown(launch)}, not a Launch or nothing, at launch")
    return None


def advice_of(
    plugin: type[Any],
    options: Any,
    limits: Limits,
    tools: Mapping[str, Mapping[str, Any]],
    *,
    asked: Collection[str] = (),
    on_host: bool = False,
) -> tuple[Advice, ...]:
    """Ask *plugin*. A fault about an option that is not *asked* for is a warning."""
    try:
        made = plugins.hooks(plugin())
        found = made.advise(options=options, limits=limits, tools=tools, on_host=on_host)
        return tuple(_judged(one, asked) for one in found or ())
    except CaptureError as exc:
        text = one_line(exc)
    except (Exception, SystemExit) as exc:  # a stranger's code, and words only
        text = f"advise raised {raised(exc)}"
    return (Advice(text, level="warning"),)


def _judged(one: Any, asked: Collection[str]) -> Advice:
    if not isinstance(one, Advice):
        raise TypeError(f"it must return a list of rlprof.Advice, got {shown(one)} in it")
    is_default = one.about not in ("", *asked)
    if one.level == "fault" and is_default:
        return attrs.evolve(one, level="warning")
    return one


def merge_launches(launches: Mapping[str, Launch]) -> Launch:
    """Merge the Launches of several plugins; raise ValueError if two set the same key."""
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
