"""Findings from devices: exposed communication, a host that is too slow, a late rank."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs

from rlprof_report._plain import listed
from rlprof_report.values import Finding
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlprof_report.device.values import CaptureDevice, Device, LateRank
    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step

_EXPOSED, _LAUNCH_BOUND = 0.10, 0.20
"""The least shares of the recorded phases for a finding."""
_LATE = 0.05
"""The least share of a window, and of a step, that the others wait for one rank."""
_SMALL = 0.05
"""Of a finding: phases with a smaller share of it are not named."""
_VOTES = 0.5
"""The least share of the collectives to which the rank came last."""


def device_findings(device: Device, analysis: Analysis | None = None) -> tuple[Finding, ...]:
    """Return the findings in the traces of a run's windows, the largest first.

    With *analysis*, seconds are those of its median clean step: recording slows the host down, and
    what the device does takes as long without it. Else they are those of a recorded step.
    """
    usual = _Usual({}, None, ())
    if analysis is not None and analysis.clean.median_s:
        phases = {one.name: one.median_s for one in analysis.phases}
        usual = _Usual(phases, analysis.clean.median_s, analysis.clean.steps)
    found = [*_of_roles(device, usual), *_of_ranks(device, usual)]
    return tuple(sorted(found, key=lambda finding: -finding.seconds))


def late_in(device: Device, step: Step) -> tuple[Finding, ...]:
    """Return the ranks that come last to the collectives of one step, if windows recorded it."""
    ours = str(step.step)
    late = tuple(one for one in device.late if one.window.partition("/")[0] == ours)
    phases: defaultdict[str, float] = defaultdict(float)
    for phase in step.phases:
        phases[phase.name] += phase.seconds
    own = attrs.evolve(device, late=late)
    return tuple(_of_ranks(own, _Usual(phases, step.seconds, ())))


@attrs.frozen
class _Usual:
    """Seconds of clean steps."""

    phases: Mapping[str, float]
    step_s: float | None
    steps: tuple[int, ...]

    def of(self, phase: str) -> float | None:
        """Return the seconds of *phase*; empty is the whole step, and None is unknown."""
        return self.phases.get(phase) if phase else self.step_s


def _of_roles(device: Device, usual: _Usual) -> Iterator[Finding]:
    for role in device.roles:
        ones = [one for one in device.captures if one.role == role.role and one.temporal]
        if role.temporal is None or role.idle is None or not role.temporal.window_s:
            continue
        longest = next((one.name for one in role.kernels if one.kind == "communication"), "")
        operator = role.operators[0].name if role.operators else ""
        for recorded_s, least, of, title, more in (
            (
                role.temporal.exposed_communication_s, _EXPOSED, _exposed,
                "exposed communication, with no compute meanwhile, takes", f", most in {longest}",
            ),
            (
                role.idle.launch_bound_s, _LAUNCH_BOUND, _launch_bound,
                "the device waits for the host to launch kernels for",
                f"; the host spends the most time in {operator}" if operator else "",
            ),
        ):  # fmt: skip
            seconds, of_s, phases = _of_a_step(ones, of, usual)
            if not of_s or seconds / of_s < least:
                continue
            worst, traces = max(ones, key=of), f"{len(ones)} trace{'s' * (len(ones) != 1)}"
            yield _finding(
                f"{role.role}: {title} {seconds / of_s:.0%} of {listed(phases)}.",
                (
                    f"{recorded_s:.3f} of {role.temporal.window_s:.3f} s in {traces}{more}.",
                    f"{worst.target} in {worst.window} has the most: {of(worst):.3f} s.",
                ),
                (seconds, of_s),
                worst,
                usual,
            )


def _of_a_step(
    ones: Sequence[CaptureDevice], of: Callable[[CaptureDevice], float], usual: _Usual
) -> tuple[float, float, list[str]]:
    """Return the seconds in a step of one rank, those of its phases, and the names of most."""
    by_phase: defaultdict[str, list[CaptureDevice]] = defaultdict(list)
    for one in ones:
        by_phase[_phase_of(one)].append(one)
    of_s, parts = 0.0, dict[str, float]()
    for phase, own in by_phase.items():
        count = len({(one.target, _step_of(one)) for one in own})
        bad_s = sum(map(of, own)) / count
        span_s = sum(one.temporal.window_s for one in own if one.temporal) / count
        clean_s = usual.of(phase)
        if clean_s is not None:
            bad_s, span_s = min(bad_s, max(0.0, clean_s - (span_s - bad_s))), clean_s
        of_s += span_s
        parts[phase or "the step"] = bad_s
    seconds = sum(parts.values())
    named = sorted((one for one in parts if parts[one] > _SMALL * seconds), key=parts.__getitem__)
    return seconds, of_s, named[::-1]


def _of_ranks(device: Device, usual: _Usual) -> Iterator[Finding]:
    """Name the rank that comes last to most collectives of its role; else those that take turns."""
    for role in dict.fromkeys(one.role for one in device.late):
        ranks = [one for one in device.late if one.role == role]
        names = {one.rank: f"rank {one.rank} comes" for one in ranks}
        found = _last(device, ranks, names, usual)
        if not found and (together := _by_turns(device, ranks, names)):
            found = _last(device, together, names, usual)
        yield from found


def _by_turns(device: Device, ranks: Sequence[LateRank], names: dict[int, str]) -> list[LateRank]:
    """Take for one the ranks that are late in every window, and name it in *names*.

    They are those of one host, or half of all at most. Empty: there are no such ranks.
    """
    by_window: defaultdict[str, list[LateRank]] = defaultdict(list)
    for one in ranks:
        by_window[one.window].append(one)
    late = {frozenset(_late(ones)) for ones in by_window.values()}
    own, everyone = late.pop(), {one.rank for one in ranks}
    if late or not 1 < len(own) < len(everyone):
        return []
    hosts = {one.rank: one.host for one in device.captures if one.role == ranks[0].role}
    first, host = min(own), hosts[min(own)]
    if own == {rank for rank in everyone if hosts[rank] == host}:
        names[first] = f"the {len(own)} ranks on {host} come"
    elif 2 * len(own) <= len(everyone):
        names[first] = f"ranks {listed(ranges_of(own))} come"
    else:
        return []
    found: list[LateRank] = []
    for ones in by_window.values():
        mine = [one for one in ones if one.rank in own]
        late_s, votes = sum(one.late_s for one in mine) / len(mine), sum(one.votes for one in mine)
        found.append(attrs.evolve(mine[0], rank=first, late_s=late_s, votes=votes))
        found += [one for one in ones if one.rank not in own]
    return found


def _late(ones: Sequence[LateRank]) -> Iterator[int]:
    """Yield the ranks of a window that are half as late as the latest, or more."""
    most_s = max(one.late_s for one in ones)
    yield from (one.rank for one in ones if one.late_s >= most_s / 2)


def _last(
    device: Device, late: Sequence[LateRank], names: Mapping[int, str], usual: _Usual
) -> list[Finding]:
    """Find the one that comes last to most collectives in every window."""
    by_window: defaultdict[str, list[LateRank]] = defaultdict(list)
    for one in late:
        by_window[one.window].append(one)
    last = [max(ones, key=lambda one: (one.votes, one.late_s)) for ones in by_window.values()]
    are_late = all(one.votes >= _VOTES * one.collectives for one in last)
    if len({one.rank for one in last}) > 1 or not are_late:
        return []
    # The others wait as much longer than the late one does.
    waits = [_wait_s(ones, one) for ones, one in zip(by_window.values(), last, strict=True)]
    role, rank = last[0].role, last[0].rank
    mine = [one for one in device.captures if (one.role, one.rank) == (role, rank)
            and one.window in by_window]  # fmt: skip
    spans = [
        one.temporal.window_s if one.temporal else usual.of(_phase_of(one)) or 0.0 for one in mine
    ]
    span_s = sum(spans)
    if not span_s or not _LATE <= sum(waits) / span_s <= 1:  # such a step is not usual
        return []
    steps = len({_step_of(one) for one in mine})
    if sum(waits) / steps < _LATE * (usual.step_s or 0.0):
        return []
    many = f"{len(last)} window{'s' * (len(last) != 1)}"
    votes, count = sum(one.votes for one in last), sum(one.collectives for one in last)
    return [
        _finding(
            f"{role}: {names[rank]} last to collectives, and the others wait.",
            (
                f"So it was in {votes} of {count} collectives, in {many}.",
                f"The others wait {sum(waits):.3f} s longer in collectives.",
            ),
            (sum(waits) / steps, span_s / steps),
            mine[0],
            usual,
        )
    ]


def _phase_of(one: CaptureDevice) -> str:
    """`7/update_actor.1` is the second `update_actor` of its step."""
    name, _, number = one.window.partition("/")[2].rpartition(".")
    return name if number.isdecimal() else one.window.partition("/")[2]


def _step_of(one: CaptureDevice) -> str:
    return one.window.partition("/")[0]


def _wait_s(ones: Sequence[LateRank], last: LateRank) -> float:
    others = [one.late_s for one in ones if one.rank != last.rank]
    return last.late_s - sum(others) / len(others) if others else 0.0


def _exposed(one: CaptureDevice) -> float:
    return one.temporal.exposed_communication_s if one.temporal else 0.0


def _launch_bound(one: CaptureDevice) -> float:
    return one.idle.launch_bound_s if one.idle else 0.0


def _finding(
    title: str,
    evidence: tuple[str, ...],
    seconds_of: tuple[float, float],
    worst: CaptureDevice,
    usual: _Usual,
) -> Finding:
    seconds, of_s = seconds_of
    first = _step_of(worst).partition("-")[0]
    step = int(first) if first.isdecimal() else None
    return Finding(
        cause="device",
        title=title,
        evidence=evidence,
        seconds=seconds,
        bound_s=seconds,
        share=seconds / (usual.step_s or of_s),
        steps=usual.steps or (() if step is None else (step,)),
        where=(worst.target, worst.window, worst.file),
        step=None if usual.steps else step,
    )
