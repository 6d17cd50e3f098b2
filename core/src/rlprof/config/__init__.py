"""What is asked: a configuration, checked whole before anything runs.

`load_config` checks all that can be known without plugins, `check_config` loads the plugins the
config names and checks their options too. Both raise one ConfigError with every fault found.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.config._source import Source, error_of, raise_faults, read_source
from rlprof.config._structure import BAD, Faults, join, structure
from rlprof.config._tools import ToolUse, merge_launches, options_of, use_tools
from rlprof.config._values import (
    Config,
    Counters,
    Fleet,
    Limits,
    Role,
    SlowStep,
    Spans,
    parse_names,
    parse_ranks,
)
from rlprof.errors import PluginError, closest, one_line, shown

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from rlprof.errors import ConfigError

__all__ = [
    "Config",
    "Counters",
    "Faults",
    "Fleet",
    "Limits",
    "Role",
    "SlowStep",
    "Spans",
    "ToolUse",
    "check_config",
    "choose_tools",
    "fault_at",
    "load_config",
    "merge_launches",
    "options_of",
    "parse_names",
    "parse_ranks",
    "structure",
]


_NO_CALIBRATE = "has no effect any more: only `rlprof plan` measures a tool; delete the line"


def load_config(config: Mapping[str, Any] | str | os.PathLike[str] | Config) -> Config:
    """Read and check *config*; raise ConfigError with every fault."""
    if isinstance(config, Config):
        return config
    source = read_source(config)
    faults = Faults()
    value: Config = _structured(source, faults)
    raise_faults(faults, source)
    return value


def check_config(
    config: Mapping[str, Any] | str | os.PathLike[str] | Config,
    *,
    roles: Iterable[str] | None = None,
    rank: int = 0,
) -> tuple[Config, dict[str, tuple[ToolUse, ...]]]:
    """Check *config* and the plugins that *roles* use (None: all roles), in one error.

    A process names its own role, for it needs only the plugins of that one. *rank* is the one that
    is to be launched.
    """
    if isinstance(config, Config):
        return config, choose_tools(config, roles, rank) if config.enabled else {}
    source = read_source(config)
    faults = Faults()
    value = _structured(source, faults)
    is_on = value is not BAD and value.enabled
    tools = use_tools(value, roles, faults, rank) if is_on else {}
    for name in (value.listeners or ()) if is_on else ():
        try:
            plugins.load("listener", name)
        except PluginError as exc:
            faults.add("listeners", str(exc))
    raise_faults(faults, source)
    return value, tools


def choose_tools(
    config: Config, roles: Iterable[str] | None = None, rank: int = 0
) -> dict[str, tuple[ToolUse, ...]]:
    """Load and check the plugins of a config that was loaded before."""
    faults = Faults()
    tools = use_tools(config, roles, faults, rank)
    raise_faults(faults, Source(None))
    return tools


def fault_at(
    config: Mapping[str, Any] | str | os.PathLike[str] | Config, path: str, message: str
) -> ConfigError:
    """Return the error that says *message* of *path* in *config*, with its file and line.

    For what shows only when the config is used: a rank that the launcher has not started.
    """
    faults = Faults()
    faults.add(path, message)
    return error_of(faults, Source(None) if isinstance(config, Config) else read_source(config))


def _structured(source: Source, faults: Faults) -> Any:
    for path, message in source.faults:
        faults.add(path, message)
    data = source.data
    if isinstance(data, Mapping) and "calibrate" in data:
        logging.getLogger("rlprof").warning("%s: %s", source.locate("calibrate"), _NO_CALIBRATE)
        data = {key: value for key, value in data.items() if key != "calibrate"}
    value = structure(Config, data, path="", faults=faults)
    if "engine" in faults.found:
        given = source.data["engine"]
        name = one_line(given) if isinstance(given, str) and given else "NAME"
        message = f"belongs to a role; write roles: {{rollout: {{engine: {name}}}}}"
        faults.found["engine"] = [message]
    if value is not BAD:
        _explain_options(source.data, value, faults)
        _check(value, faults, has_tools="tool" in source.data)
    return value


def _explain_options(data: Mapping[str, Any], config: Config, faults: Faults) -> None:
    """Where an option stands in the place of a tool, say so; only here the tool is known."""
    places = [("tools", data.get("tools"), "tools", sorted(_tools_of(config)))]
    for name, role in config.roles.items():
        used = [*config.tools_of(name), *([role.engine] if role.engine else [])]
        here = join(join("roles", name), "options")
        places.append(("options", data["roles"][name].get("options"), here, used))
    for key, given, here, used in places:
        for option, value in given.items() if isinstance(given, Mapping) and used else ():
            is_plain = value is not None and not isinstance(value, Mapping)
            if is_plain and type(option) is str and option not in used:
                meant = f"{key}: {{{used[0]}: {{{option}: {shown(value)}}}}}"
                message = f"options are by tool; write {one_line(meant)}"
                faults.found[join(here, option)] = [message]


def _tools_of(config: Config, *roles: str) -> set[str]:
    """Name the tools that *roles* (none: all) have, or that an engine of theirs may drive."""
    return {
        name
        for role in roles or config.roles
        for name in (
            *config.tools_of(role),
            *(config.tools_inside(role) if config.roles[role].engine else ()),
        )
    }


def _check(config: Config, faults: Faults, *, has_tools: bool) -> None:
    """Add the faults of values that are right on their own but not together.

    *has_tools*: the config says `tool`, and it may say `none`.
    """
    keeps_spans = has_tools and not config.tool and not faults.below("tool")
    is_empty = not config.roles and not faults.below("roles")
    if config.enabled and is_empty and not keeps_spans:
        faults.add("roles", "names no role, so nothing would be recorded; add one, e.g. actor: {}")
    if config.join_steps and config.mode == "discrete":
        faults.add("join_steps", "needs mode: continuous; discrete windows never span steps")
    for name, role in config.roles.items():
        here = join("roles", name)
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", name):
            faults.add(
                here,
                "cannot be the name of a role; use up to 63 letters, digits, '_' and '-', "
                "beginning with a letter",
            )
        tool_is_bad = faults.below("tool") or faults.below(join(here, "tool"))
        if not (config.records(name) or keeps_spans or role.tool == () or tool_is_bad):
            faults.add(here, "has no tool; name one here or for the run: tool: torch")
        if role.phases == ():
            faults.add(
                join(here, "phases"), "names no phase; name some, or leave it out to record all"
            )
        if role.phases is not None and config.mode == "continuous":
            faults.add(
                join(here, "phases"),
                "only discrete mode records by phase; leave it out or set mode: discrete",
            )
        if tool_is_bad:
            continue
        used = {*_tools_of(config, name), *([role.engine] if role.engine else [])}
        for unused in sorted(role.options.keys() - used):
            there = one_line(", ".join(join("", name) for name in sorted(used))) or "none"
            faults.add(
                join(join(here, "options"), unused), f"this role does not use it (it uses: {there})"
            )
    engines = {role.engine for role in config.roles.values() if role.engine is not None}
    tools = _tools_of(config)
    for key, given, used in (
        ("tools", config.tools, tools),
        ("engines", config.engines, engines),
    ):
        for name in sorted(given.keys() - used):
            hint = closest(name, sorted(used - given.keys()), cutoff=0.8)
            # Else they are options of a plugin that is not in use now, or the role misspells it.
            if hint and not plugins.kinds(name):
                faults.add(join(key, name), f"no role uses it{hint}")
