"""What differs besides times: findings, slots, kernels, config, versions."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report.values.diff import KernelChange, Pair, Resized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof import Run
    from rlprof_report._diff.part import Part
    from rlprof_report.device.values import TopName
    from rlprof_report.values import Finding
    from rlprof_report.values.diff import KernelState

_SHARE = 0.01
"""Slots that are empty, and kernels that run, below this share are not compared."""
_FEWEST = 2
"""Clean steps that findings need."""
_RESIZED = 1.25
"""A finding has changed if it takes this many times as long, or as short."""
_SLOTS = ("start", "queued", "tools", "tail", "finished", "outside")
_SLOWER = 1.1
_CALLS = 5
"""Calls of a kernel that a median needs."""


def findings(
    a: Part, b: Part
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Resized, ...]]:
    """Return the new findings, the gone ones, and those that changed their size.

    A part with too few clean steps has no findings, so nothing came or went.
    """
    if any(len(part.analysis.clean.steps) < _FEWEST for part in (a, b)):
        return (), (), ()
    has_device = None not in (a.analysis.device, b.analysis.device)
    left, right = (
        {_about(one): one for one in part.findings if has_device or one.cause != "device"}
        for part in (a, b)
    )
    both = [(left[about], one) for about, one in right.items() if about in left]
    return (
        tuple(one for about, one in right.items() if about not in left),
        tuple(one for about, one in left.items() if about not in right),
        tuple(
            Resized(old.seconds, new.seconds, new)
            for old, new in both
            if not old.seconds / _RESIZED < new.seconds < old.seconds * _RESIZED
        ),
    )


def _about(finding: Finding) -> tuple[str, str]:
    """Name the subject of a finding, in words that another run shares: `actor 5`."""
    if finding.cause == "device":
        return finding.cause, re.sub(r"\d+%", "", finding.title)
    place = finding.where[0] if finding.where and finding.cause in ("straggler", "replica") else ""
    return finding.cause, place.split(":")[0]  # then comes a file, with the number of a process


def shares(a: Part, b: Part) -> tuple[Pair, ...]:
    """Compare utilisation and slots of the rollout, as medians over the compared steps."""
    return _pairs(dict(_shares(a)), dict(_shares(b)))


def _shares(part: Part) -> Iterator[tuple[str, str]]:
    rollouts = [step.rollout for _, step in part.compared() if step.rollout is not None]
    used = [one.utilisation for one in rollouts if one.utilisation is not None]
    if used:
        yield "utilisation of slots", f"{100 * median(used):.0f} %"
    replicas = [replica for one in rollouts for replica in one.replicas]
    slots = sum(replica.slots for replica in replicas)
    for name in _SLOTS if slots else ():
        empty = sum((getattr(replica, name) or 0.0) * replica.slots for replica in replicas) / slots
        if empty >= _SHARE:
            yield f"slots empty: {name}", f"{100 * empty:.0f} %"
    tails = [one.tail_s["0.95"] for one in rollouts if "0.95" in one.tail_s]
    if tails:
        yield "last 5 % of trajectories", f"{median(tails):.2f} s"


def settings(a: Run, b: Run) -> tuple[Pair, ...]:
    """Compare the configs key by key, but for the folder of the run."""
    left, right = ({k: v for k, v in _flat(run.config) if k != "run_dir"} for run in (a, b))
    return _pairs(left, right)


def versions(a: Run, b: Run) -> tuple[Pair, ...]:
    """Compare the processes: versions of packages, hosts, and the number of each role."""
    return _pairs(_ran_with(a), _ran_with(b))


def _pairs(left: Mapping[str, str], right: Mapping[str, str]) -> tuple[Pair, ...]:
    return tuple(
        Pair(name, left.get(name), right.get(name))
        for name in dict.fromkeys([*left, *right])
        if left.get(name) != right.get(name)
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Name each value of a nested config, but null, by its dotted key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


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
    known = {name: ", ".join(sorted(values)) for name, values in found.items() if values}
    return known | {role: str(size) for role, size in sizes.items()}


@attrs.frozen
class _Kernel:
    """One kernel over the captures of a role; by default in none."""

    median_us: float | None = None
    count: int = 0
    share: float = 0.0


def kernels(a: Part, b: Part) -> Iterator[KernelChange]:
    """Compare the kernels that take longest, where both have traces with device events."""
    left, right = _kernels(a), _kernels(b)
    for role in sorted(left.keys() & right.keys()):
        old, new = left[role], right[role]
        shortest = [min(one.share for one in side.values()) for side in (old, new)]
        for name in dict.fromkeys([*old, *new]):
            one, two = old.get(name, _Kernel()), new.get(name, _Kernel())
            if state := _state(one, two, *shortest):
                medians, counts = (one.median_us, two.median_us), (one.count, two.count)
                yield KernelChange(role, name, state, *medians, *counts)


def _kernels(part: Part) -> dict[str, dict[str, _Kernel]]:
    rows: defaultdict[str, defaultdict[str, list[TopName]]] = defaultdict(lambda: defaultdict(list))
    for capture in getattr(part.analysis.device, "captures", ()):
        first = capture.window.split("/")[0].split("-")[0]
        if not first.isdecimal() or part.has(int(first)):
            for row in capture.kernels:
                rows[capture.role][row.name].append(row)
    return {
        role: {name: _kernel(found) for name, found in named.items()}
        for role, named in rows.items()
    }


def _kernel(rows: Sequence[TopName]) -> _Kernel:
    """Put captures together: the median is that of their medians, each as often as its calls."""
    median_us = None
    timed = sorted((row.median_s, row.count) for row in rows if row.median_s is not None)
    if timed:
        values, counts = np.array(timed).T
        at = np.searchsorted(np.cumsum(counts), counts.sum() / 2)
        median_us = float(values[at]) * 1e6
    return _Kernel(median_us, sum(row.count for row in rows), max(row.share for row in rows))


def _state(a: _Kernel, b: _Kernel, a_shortest: float, b_shortest: float) -> KernelState | None:
    """Compare one kernel; None: it changed too little, or is too short for the other's list."""
    if not a.count:
        return "new" if b.share >= max(_SHARE, a_shortest) else None
    if not b.count:
        return "gone" if a.share >= max(_SHARE, b_shortest) else None
    if min(a.count, b.count) < _CALLS or max(a.share, b.share) < _SHARE:
        return None
    if not (a.median_us and b.median_us):
        return None
    if b.median_us >= _SLOWER * a.median_us:
        return "slower"
    return "faster" if a.median_us >= _SLOWER * b.median_us else None
