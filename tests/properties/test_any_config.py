"""Any wrong value in a config is one fault: one line that says what to do."""

import copy
import re
from typing import Any

import pytest

from rlprof.config import check_config
from rlprof.errors import ConfigError
from tests.fakes import tools

_LONGEST = 1000
_ADVICE = (
    re.compile(r"(?:^|: )expected .+, got .+"),  # the expected value is what to do
    re.compile(r"\S; \S"),
    re.compile(r" \([a-z ]+: .+\)$"),  # what there is: (installed: torch)
    re.compile(r"^is not YAML: .+"),  # PyYAML's words, at line and column
    re.compile(r"^cannot be read: .+"),  # the system's
)
_NOT_TEXT = (None, 7, [], {"x": 1})
_NOT_BOOL = (None, 0, "true", [True])
_NOT_SECONDS = (None, True, -1, 10**10, float("inf"), "60", {})
_NOT_NAMES = (None, 7, "", {"x": 1}, ["a", "a"], ["a", 7])
_NOT_SIZE = (None, True, 0, 2**63, "4 parsec", ["4GB"])
_NOT_MAPPING = (None, 7, "x", ["x"])

_SECONDS = ("window", "start_timeout", "stop_timeout", "export_timeout", "configure_timeout")

WRONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("enabled", "strict", "quiet", "join_steps", "fleet.collect"), _NOT_BOOL),
    **dict.fromkeys(
        ("roles.actor", "roles.actor.options", "roles.actor.options.fake", "tools", "tools.fake",
         "engines", "limits", "fleet", "spans"), _NOT_MAPPING),
    **dict.fromkeys((f"{one}.bytes" for one in ("limits", "spans", "counters")), _NOT_SIZE),
    **dict.fromkeys((f"limits.{one}_s" for one in _SECONDS), _NOT_SECONDS),
    **dict.fromkeys(("counters.every_s", "counters.in_window_s"), _NOT_SECONDS),
    "run_dir": _NOT_TEXT,
    "scratch_dir": _NOT_TEXT[1:],
    "tool": _NOT_NAMES,
    "steps": (True, -1, 1.5, 10**18, "x", "4-2", [None], {"first": 2}, {"every": 0},
              {"every": 1, "x": 1}, {"every": 2, "last": "7"}),
    "mode": (None, 0, "continous", ["discrete"]),
    "roles": (7, "actor", {}, []),
    "roles.actor.ranks": (True, -1, 2**31, "7", [], [0, -1], ["all", 0], {}),
    "roles.actor.phases": (*_NOT_NAMES[1:], []),
    "roles.actor.tool": _NOT_NAMES[1:],
    "roles.actor.engine": _NOT_TEXT[1:],
    "listeners": _NOT_NAMES[1:],
    "fleet.node_dir": (7, "", "here", "~/x"),
    "counters": _NOT_MAPPING[1:],
    "slow_step": (True, 2, [2.0]),
    "slow_step.times": (None, "2", 1, 1e7),
    "slow_step.most": (None, 1.5, 0, 1001),
}  # fmt: skip
"""Path of a key → values of the wrong type or out of bounds."""

WRONG_OPTIONS: dict[str, tuple[Any, ...]] = {
    "tools.fake.level": (None, True, "1", []),
    "tools.fake.unsupported": (None, "x", [7]),
    "roles.critic.options.fake.raises_in": _NOT_TEXT,
}
"""The same for options that only the plugin `fake` checks."""

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


def misformed(error):
    """Describe each line of *error* that is not in the form of a fault."""
    count, lines = len(error.faults), str(error).split("\n  ")
    head = [f"{error.source}: {count} faults"] if count > 1 else []
    found = [] if lines == [*head, *error.faults] else [f"the lines are not the faults: {lines}"]
    for line in error.faults:
        where, _, words = line.removeprefix(error.source).partition(": ")
        if not line.startswith(error.source) or not re.fullmatch(r"(?::\d+){0,2}", where):
            found.append(f"says not where: {line!r}")
        if not line.isprintable():
            found.append(f"holds what breaks a line or a terminal: {line!r}")
        if len(line) > _LONGEST:
            found.append(f"is {len(line)} characters long: {line[:80]!r}")
        if not any(form.search(words) for form in _ADVICE):
            found.append(f"says not what to do: {line!r}")
        if line.endswith(".") and not line.endswith("..."):
            found.append(f"ends with a period: {line!r}")
    return found


def planted(path: str, value: Any) -> dict[str, Any]:
    """Return the valid config with *value* at *path*."""
    data = copy.deepcopy(SOUND)
    *around, key = path.split(".")
    place = data
    for name in around:
        place = place.setdefault(name, {})
    place[key] = value
    return data


@pytest.mark.parametrize("path", sorted({**WRONG, **WRONG_OPTIONS}))
def test_every_wrong_value_of_every_key_is_one_fault(path):
    """Each wrong value of a key is exactly one well-formed fault at the path of its key."""
    tools.register()
    for value in {**WRONG, **WRONG_OPTIONS}[path]:
        with pytest.raises(ConfigError) as caught:
            check_config(planted(path, value))

        (fault,) = caught.value.faults
        where, _, words = fault.removeprefix("config: ").partition(": ")
        assert where.partition("[")[0] == path, fault
        assert words
        assert misformed(caught.value) == []
