"""What differs besides times: findings, slots, kernels, config, versions."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rlprof_report.values.diff import KernelChange, Pair

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof import Run
    from rlprof_report._diff.part import Part
    from rlprof_report.device import TopName
    from rlprof_report.values import Finding

_SHARE = 0.01
"""Kernels below this share of their windows are passed over."""
_SLOWER = 1.1
_CALLS = 5
"""Calls of a kernel that a median needs."""
_SLOTS = ("start", "queued", "tools", "tail", "finished", "outside")


def findings(part: Part, other: Part) -> tuple[Finding, ...]:
    """Return the findings of *part* about causes, roles or ranks that *other* has none about."""
    known = {_about(finding) for finding in other.findings}
    return tuple(finding for finding in part.findings if _about(finding) not in known)


def _about(finding: Finding) -> tuple[str, str]:
    """Say what a finding is about, in words that are the same in another run: `actor 5`."""
    place = finding.where[0] if finding.where and finding.cause in ("straggler", "replica") else ""
    return finding.cause, place.split(":")[0]  # then comes a file, with the number of a process


def shares(a: Part, b: Part) -> tuple[Pair, ...]:
    """Compare utilisation and slots of the rollout, as medians over the compared steps."""
    return _pairs(dict(_shares(a)), dict(_shares(b)))


def _shares(part: Part) -> Iterator[tuple[str, str]]:
    rollouts = [step.rollout for _, step in part.clean() if step.rollout is not None]
    used = [one.utilisation for one in rollouts if one.utilisation is not None]
    if used:
        yield "utilisation of slots", f"{100 * median(used):.0f} %"
    replicas = [replica for one in rollouts for replica in one.replicas]
    slots = sum(replica.slots for replica in replicas)
    for name in _SLOTS if slots else ():
        empty = sum(getattr(replica, name) * replica.slots for replica in replicas) / slots
        if empty >= _SHARE:
            yield f"slots empty: {name}", f"{100 * empty:.0f} %"
    tails = [one.tail_s["0.95"] for one in rollouts if "0.95" in one.tail_s]
    if tails:
        yield "last 5 % of trajectories", f"{median(tails):.2f} s"


def kernels(a: Part, b: Part) -> tuple[KernelChange, ...]:
    """Compare the kernels that take longest, where both have traces with device events."""
    left, right = _kernels(a), _kernels(b)
    changes = []
    for role in sorted(left.keys() & right.keys()):
        old, new = left[role], right[role]
        floors = [max(_SHARE, min(one.share for one in side.values())) for side in (old, new)]
        for name in dict.fromkeys([*old, *new]):
            before, after = old.get(name), new.get(name)
            change = _kernel(role, name, before, after, floors)
            if change is not None:
                changes.append(change)
    return tuple(changes)


class _Kernel:
    """One kernel over the captures of a role."""

    def __init__(self) -> None:
        self.count, self.share = 0, 0.0
        self.medians: list[tuple[float, int]] = []

    def add(self, row: TopName) -> None:
        self.count += row.count
        self.share = max(self.share, row.share)
        if row.median_s is not None:
            self.medians.append((row.median_s, row.count))

    @property
    def median_us(self) -> float | None:
        """The median of the captures' medians, each as often as it was called."""
        if not self.medians:
            return None
        values, counts = np.array(sorted(self.medians)).T
        at = np.searchsorted(np.cumsum(counts), counts.sum() / 2)
        return float(values[at]) * 1e6


def _kernels(part: Part) -> dict[str, dict[str, _Kernel]]:
    roles: dict[str, dict[str, _Kernel]] = {}
    for capture in getattr(part.analysis.device, "captures", ()):
        first = capture.window.split("/")[0].split("-")[0]
        if first.isdecimal() and not part.has(int(first)):
            continue
        for row in capture.kernels:
            found = roles.setdefault(capture.role, {})
            found.setdefault(row.name, _Kernel()).add(row)
    return roles


def _kernel(
    role: str, name: str, before: _Kernel | None, after: _Kernel | None, floors: list[float]
) -> KernelChange | None:
    """Compare one kernel; None: it changed too little."""
    a_us, b_us = (side.median_us if side else None for side in (before, after))
    state: Literal["new", "gone", "slower", "faster"]
    if before is not None and after is not None:
        enough = min(before.count, after.count) >= _CALLS
        if not (enough and a_us and b_us and max(before.share, after.share) >= _SHARE):
            return None
        if max(a_us / b_us, b_us / a_us) < _SLOWER:
            return None
        state = "slower" if b_us > a_us else "faster"
    elif before is None and after is not None and after.share >= floors[0]:
        state = "new"
    elif after is None and before is not None and before.share >= floors[1]:
        state = "gone"
    else:  # it may be too short for the list of the other
        return None
    counts = (before.count if before else 0), (after.count if after else 0)
    return KernelChange(role, name, state, a_us, b_us, *counts)


def settings(a: Run, b: Run) -> tuple[Pair, ...]:
    """Compare the configs key by key; where a run lies says nothing about its speed."""
    left, right = ({k: v for k, v in _flat(run.config) if k != "run_dir"} for run in (a, b))
    return _pairs(left, right)


def versions(a: Run, b: Run) -> tuple[Pair, ...]:
    """Compare what processes ran with: versions by package, hosts, and how many of each role."""
    return _pairs(_ran_with(a), _ran_with(b))


def _pairs(left: Mapping[str, str], right: Mapping[str, str]) -> tuple[Pair, ...]:
    return tuple(
        Pair(name, left.get(name), right.get(name))
        for name in dict.fromkeys([*left, *right])
        if left.get(name) != right.get(name)
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Name each value of a nested config by its dotted key."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    else:
        yield name, str(value)


def _ran_with(run: Run) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    for process in run.processes:
        for package, version in process.versions.items():
            found.setdefault(package, set()).add(str(version))
        found.setdefault("hosts", set()).add(process.here.host)
        found.setdefault("devices", set()).update(process.devices)
        role = f"processes of {process.target.role}"
        sizes[role] = sizes.get(role, 0) + 1
    told = {name: ", ".join(sorted(values)) for name, values in found.items() if values}
    return told | {role: str(size) for role, size in sizes.items()}
