"""A translated config, checked whole: every fault names the key of verl's that it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.config import check_config
from rlprof.errors import ConfigError
from rlprof_verl._translate import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.config import Config, ToolUse
    from rlprof_verl._translate import Translation

    Checked = tuple[Config, dict[str, tuple[ToolUse, ...]]]


def checked(found: Translation, source: str = "verl") -> Checked:
    """Check *found* and the plugins it names; raise ConfigError with every fault."""
    told = [f"{source}: {fault}" for fault in found.faults]
    try:
        config, uses = check_config(found.config)
    except ConfigError as exc:
        raise ConfigError(told + [_renamed(one, found, source) for one in exc.faults]) from None
    told += [f"{source}: {fault}" for fault in _unborn(uses)]
    if told:
        raise ConfigError(told, source)
    return config, uses


def _renamed(fault: str, found: Translation, source: str) -> str:
    """Put verl's key in the place of ours."""
    path, _, words = fault.removeprefix("config: ").partition(": ")
    return f"{source}: {found.verl_key(path)}: {words}"


def _unborn(uses: Mapping[str, tuple[ToolUse, ...]]) -> list[str]:
    """Name tools that must be there when a process starts that verl alone starts.

    Training workers are started with them, by `_births`.
    """
    return [
        f"{OWN}.roles.{role}.tool: {one.name!r} must be present when its process starts, and verl "
        "has no way to start it so; write torch here, and keep it for the roles actor and critic"
        for role in ("rollout", "agent")
        for use in uses.get(role, ())
        for one in use.inside or (use,)
        if one.launch.argv_prefix
    ]
