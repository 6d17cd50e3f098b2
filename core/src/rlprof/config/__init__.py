"""The configuration, checked whole before anything runs.

`load_config` checks all that can be known without plugins, `check_config` loads the plugins the
config names and checks their options too. Both raise one ConfigError with every fault found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.config._source import read_source
from rlprof.config._structure import BAD, Faults, join, structure
from rlprof.config._tools import (
    ToolUse,
    advice_of,
    check_names,
    merge_launches,
    options_of,
    use_tools,
)
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
from rlprof.errors import PluginError, one_line

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    Given = Mapping[str, Any] | str | os.PathLike[str] | Config

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
    "advice_of",
    "check_config",
    "join",
    "load_config",
    "merge_launches",
    "options_of",
    "parse_names",
    "parse_ranks",
    "structure",
    "use_tools",
]

_BY_TOOL = re.compile(r"(tools|engines|roles\.[^.]+\.options)\.[^.]+")
"""The path of what must be the options of one tool."""
_OF_ROLE = {f"roles.{field}" for field in Role.__annotations__}


def load_config(config: Given) -> Config:
    """Read and check *config*; raise ConfigError with every fault."""
    value, faults = _read(config)
    faults.raise_any()
    return value


def check_config(
    config: Given, *, roles: Iterable[str] | None = None, rank: int = 0
) -> tuple[Config, dict[str, tuple[ToolUse, ...]]]:
    """Check *config* and the plugins that *roles* use (None: all roles), in one error.

    A process names its role, because it needs only the plugins of that role. *rank* is the rank to
    launch.
    """
    value, faults = _read(config)
    if value is BAD or not value.enabled:
        faults.raise_any()
        return value, {}
    tools = use_tools(value, roles, faults, rank)
    heard = [("listeners", name) for name in value.listeners or ()]
    if value.is_remote:
        heard.append(("run_dir", "bucket"))
    for path, name in heard:
        try:
            plugins.load("listener", name)
        except PluginError as exc:
            faults.add(path, str(exc))
    faults.raise_any()
    return value, tools


def _read(config: Given) -> tuple[Config, Faults]:
    """Return *config*, or BAD, and the faults that show without loading plugins."""
    if isinstance(config, Config):
        return config, Faults()
    data, faults = read_source(config)
    value: Config = structure(Config, data, path="", faults=faults)
    for path, messages in faults.found.items():
        if messages[0].startswith("expected keys") and _BY_TOOL.fullmatch(path):
            messages[0] += "; options stand by tool: {torch: {contents: [cpu]}}"
        elif messages[0].startswith("expected keys") and path in _OF_ROLE:
            messages[0] += "; it is a key of a role: indent it below one"
    if value is not BAD:
        _check(value, faults, has_tool="tool" in data)
        check_names(value, faults)
    return value, faults


def _check(config: Config, faults: Faults, *, has_tool: bool) -> None:
    """Add the faults of values that are valid alone but not together.

    *has_tool*: the config says `tool`, and it may say `none`.
    """
    tool_is_bad, mode_is_bad = faults.below("tool"), faults.below("mode")
    keeps_spans = has_tool and not config.tool and not tool_is_bad
    if config.enabled and not (config.roles or keeps_spans or faults.below("roles")):
        faults.add("roles", "names no role, so nothing would be recorded; add one, e.g. actor: {}")
    if config.join_steps and config.mode == "discrete" and not mode_is_bad:
        faults.add("join_steps", "needs mode: continuous; discrete windows never span steps")
    for name, role in config.roles.items():
        here = join("roles", name)
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", name):
            words = "use up to 63 letters, digits, '_' and '-', beginning with a letter"
            faults.add(here, f"cannot be the name of a role; {words}")
        if role.phases is not None and config.mode == "continuous":
            words = "leave it out or set mode: discrete"
            faults.add(join(here, "phases"), f"only discrete mode records by phase; {words}")
        if tool_is_bad or faults.below(join(here, "tool")):
            continue
        if not (config.records(name) or keeps_spans or role.tool == ()):
            faults.add(here, "has no tool; name one here or for the run: tool: torch")
        used = {*config.tools_inside(name), *([role.engine] if role.engine else [])}
        there = one_line(", ".join(sorted(used))) or "none"
        for unused in sorted(role.options.keys() - used):
            place = join(join(here, "options"), unused)
            faults.add(place, f"this role does not use it (it uses: {there})")
