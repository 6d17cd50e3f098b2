"""A sound config, and faults to plant into it: independent of each other, each with its path."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_TEXT = (None, 7, [], {"x": 1})
_NOT_BOOL = (None, 0, "true", [True])
_NOT_SECONDS = (None, True, -1, 10**10, float("inf"), "60", {})
_NOT_NAMES = (None, 7, "", {"x": 1}, ["a", "a"], ["a", 7])
_NOT_SIZE = (None, True, 0, 2**63, "4 parsec", ["4GB"])
_NOT_MAPPING = (None, 7, "x", ["x"])

WRONG: dict[str, tuple[Any, ...]] = {
    "run_dir": _NOT_TEXT,
    "scratch_dir": _NOT_TEXT[1:],
    "enabled": _NOT_BOOL,
    "strict": _NOT_BOOL,
    "quiet": _NOT_BOOL,
    "tool": _NOT_NAMES,
    "steps": (True, -1, 1.5, 10**18, "x", "4-2", [None], {"first": 2}, {"every": 0},
              {"every": 1, "x": 1}, {"every": 2, "last": "7"}),
    "mode": (None, 0, "continous", ["discrete"]),
    "join_steps": _NOT_BOOL,
    "roles": (7, "actor", {}, []),
    "roles.actor": _NOT_MAPPING,
    "roles.actor.ranks": (True, -1, 2**31, "7", [], [0, -1], ["all"], {}),
    "roles.actor.phases": (*_NOT_NAMES[1:], []),
    "roles.actor.tool": _NOT_NAMES[1:],
    "roles.actor.engine": _NOT_TEXT[1:],
    "roles.actor.options": _NOT_MAPPING,
    "roles.actor.options.fake": _NOT_MAPPING,
    "tools": _NOT_MAPPING,
    "tools.fake": _NOT_MAPPING,
    "engines": _NOT_MAPPING,
    "limits": _NOT_MAPPING,
    "limits.bytes": _NOT_SIZE,
    "limits.window_s": _NOT_SECONDS,
    "limits.start_timeout_s": _NOT_SECONDS,
    "limits.stop_timeout_s": _NOT_SECONDS,
    "limits.export_timeout_s": _NOT_SECONDS,
    "limits.configure_timeout_s": _NOT_SECONDS,
    "listeners": _NOT_NAMES[1:],
    "fleet": _NOT_MAPPING,
    "fleet.node_dir": (7, "", "here", "~/x"),
    "fleet.collect": _NOT_BOOL,
    "spans": _NOT_MAPPING,
    "spans.bytes": _NOT_SIZE,
    "counters": _NOT_MAPPING[1:],
    "counters.every_s": _NOT_SECONDS,
    "counters.in_window_s": _NOT_SECONDS,
    "counters.bytes": _NOT_SIZE,
    "slow_step": (True, 2, [2.0]),
    "slow_step.times": (None, "2", 1, 1e7),
    "slow_step.most": (None, 1.5, 0, 1001),
}  # fmt: skip
"""Path of a key → values that are of the wrong type or out of bounds there."""

WRONG_OPTIONS: dict[str, tuple[Any, ...]] = {
    "tools.fake.level": (None, True, "1", []),
    "tools.fake.unsupported": (None, "x", [7]),
    "roles.critic.options.fake.raises_in": _NOT_TEXT,
}
"""Likewise, for what only the plugin of `fake` knows."""

UNKNOWN = ("qqq", "roles.actor.qqq", "roles.critic.qqq", "limits.qqq", "tools.fake.qqq")
"""Keys that mean nothing, at every level that has keys."""

SOUND: dict[str, Any] = {
    "run_dir": "outputs/profile",
    "tool": "fake",
    "steps": [2, "5-7"],
    "mode": "discrete",
    "roles": {
        "actor": {"ranks": [0, 1], "phases": ["rollout"]},
        "critic": {"options": {"fake": {"artifacts": 2}}},
    },
    "tools": {"fake": {"level": 3, "hangs_in": ""}},
    "limits": {"bytes": "4GB", "window_s": 60},
    "slow_step": {"times": 3.0},
    "strict": False,
    "quiet": False,
}


@attrs.frozen
class Plant:
    """A fault: what is put where."""

    path: str
    value: Any

    def hides(self, other: Plant) -> bool:
        """Whether *other* is not looked at any more with this one in place."""
        if self == other:
            return False
        below = other.path == self.path or other.path.startswith(f"{self.path}.")
        # Which tool it is says whose options are checked.
        options = self.path.endswith("tool") and ".fake." in other.path
        return below or options


def plants() -> list[Plant]:
    """List every fault there is, at leaves."""
    leaves = {
        path: values
        for path, values in {**WRONG, **WRONG_OPTIONS}.items()
        if path.startswith("roles.critic.options.fake.") or not any(
            other.startswith(f"{path}.") for other in (*WRONG, *WRONG_OPTIONS))
    }  # fmt: skip
    wrong = [Plant(path, value) for path, values in leaves.items() for value in values]
    return wrong + [Plant(path, 1) for path in UNKNOWN]


def planted(chosen: list[Plant]) -> dict[str, Any]:
    """Return the sound config with all of *chosen* in it."""
    data = copy.deepcopy(SOUND)
    for plant in chosen:
        *around, key = plant.path.split(".")
        place = data
        for name in around:
            place = place.setdefault(name, {})
        place[key] = plant.value
    return data


def as_yaml(data: dict[str, Any], gaps: list[int]) -> tuple[str, dict[str, int]]:
    """Write *data* a key per line, with comments as *gaps* say; return it and each key's line."""
    lines: list[str] = []
    where: dict[str, int] = {}
    for path, value in _flat(data, ""):
        indent, key = "  " * path.count("."), path.rpartition(".")[2]
        lines += ["# a comment"] * gaps[len(where) % len(gaps)]
        lines.append(f"{indent}{key}:{value}")
        where[path] = len(lines)
    return "\n".join(lines) + "\n", where


def _flat(data: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """List every key below *path* with its value as YAML; nothing, where keys follow."""
    for key, value in data.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield here, ""
            yield from _flat(value, here)
        else:
            # YAML 1.1 takes 1e300 for text: a number needs a point and a sign.
            odd = {float("inf"): ".inf", 1e300: "1.0e+300"}
            yield here, " " + (odd.get(value) if type(value) is float and value in odd
                               else json.dumps(value))  # fmt: skip
