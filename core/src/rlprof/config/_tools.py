"""The tools a config names: their plugins loaded, their options structured, their claims compared.

Needs only the plugins of the roles it is asked for: a training node has no rollout engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.config._structure import BAD, Faults, join, structure
from rlprof.errors import PluginError, RlprofError
from rlprof.types import Launch, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlprof.config._values import Config


@attrs.frozen
class NoOptions:
    """The options of a plugin that has none."""


@attrs.frozen
class ToolUse:
    """One tool as one role uses it."""

    name: str
    plugin: type[Any]
    options: Any
    """A value of the plugin's `Options`."""
    asked: Mapping[str, Any]
    """The same as plain data, as the config gives them."""
    claims: Mapping[str, str]
    launch: Launch
    """What a process with this tool must be born with."""


def use_tools(
    config: Config, roles: Iterable[str] | None, faults: Faults
) -> dict[str, tuple[ToolUse, ...]]:
    """Load what *roles* use (None: all) and add all that is wrong to *faults*."""
    names = config.roles if roles is None else [role for role in roles if role in config.roles]
    return {role: _of_role(config, role, faults) for role in names}


def _of_role(config: Config, role: str, faults: Faults) -> tuple[ToolUse, ...]:
    here = join("roles", role)
    uses: list[ToolUse] = []
    for name in config.tools_of(role):
        use = _use(config, role, name, faults)
        if use is None:
            continue
        for other in uses:
            for claim in sorted(use.claims.keys() & other.claims.keys()):
                faults.add(
                    here,
                    f"tools {other.name!r} and {name!r} both need {claim} "
                    f"(one per {use.claims[claim]}); give them to different runs or roles",
                )
        uses.append(use)
    try:
        merge_launches({use.name: use.launch for use in uses})
    except ValueError as exc:
        faults.add(here, str(exc))
    engine = config.roles[role].engine
    if engine is not None:
        try:
            plugins.load("engine", engine)
        except PluginError as exc:
            faults.add(join(here, "engine"), str(exc))
    return tuple(uses)


def _use(config: Config, role: str, name: str, faults: Faults) -> ToolUse | None:
    """Load one tool and structure its options for one role."""
    own = config.roles[role]
    where = join(join("roles", role), "tool") if own.tool is not None else "tool"
    try:
        plugin = plugins.load("tool", name)
    except PluginError as exc:
        if str(exc) not in faults.found.get(where, []):  # one tool, several roles: said once
            faults.add(where, str(exc))
        return None
    general, special = config.tools.get(name, {}), own.options.get(name, {})
    path = join("tools", name)
    if special:
        path = join(join(join("roles", role), "options"), name)
    asked = {**general, **special}
    if faults.below(path):
        return None
    options = structure(getattr(plugin, "Options", NoOptions), asked, path=path, faults=faults)
    if options is BAD or faults.below(path):
        return None
    launch = _launch(plugin, Target(role), options, path, faults)
    claims = dict(getattr(plugin, "claims", {}))
    return ToolUse(name, plugin, options, asked, claims, launch)


def _launch(plugin: type[Any], target: Target, options: Any, path: str, faults: Faults) -> Launch:
    """Ask the plugin what it needs from birth; what it refuses is a fault of the config."""
    try:
        hook = plugins.hooks("tool", plugin())
        return hook.configure(place="launch", target=target, options=options) or Launch()
    except RlprofError as exc:
        faults.add(path, str(exc))
    except Exception as exc:  # a stranger's code, before the run: told, not passed on
        faults.add(path, f"configure raised {type(exc).__name__}: {exc}")
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
                        f"tools {who!r} and {name!r} want {field} {key!r} to be "
                        f"{values[key]!r} and {value!r}; use one of them"
                    )
                values[key] = value
                wanted[field, key] = name
    return Launch(argv_prefix=prefix, **merged)
