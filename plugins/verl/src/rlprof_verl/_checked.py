"""A translated config, checked whole: every fault names the key of verl's that it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.config import check_config, merge_launches
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
    """Name tools that a process must be born with: verl leaves no way to say so for its workers."""
    return [
        f"{OWN}.tool: {use.name!r} must be present when a worker of verl starts, and verl has no "
        "way to start workers with it; use torch, or verl's own global_profiler.tool=nsys"
        for role in ("actor", "critic")
        for use in uses.get(role, ())
        if (needs := merge_launches({use.name: use.launch})).argv_prefix or needs.env
    ]
