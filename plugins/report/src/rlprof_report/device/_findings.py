"""Findings from traces: exposed communication, a host that is too slow or compiles, a late rank."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING

import attrs

from rlprof_report._figures.slow import slow_of, together
from rlprof_report._plain import listed, secs
from rlprof_report.values import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlprof_report.device.values import CaptureDevice, Device, LateRank
    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step

_EXPOSED, _LAUNCH_BOUND, _COMPILED = 0.10, 0.20, 0.10
"""The least shares of the recorded phases for a finding."""
_LATE = 0.05
"""The least share of a window, and of a step, that the others wait for one rank."""
_SMALL = 0.05
"""Of a finding: phases with a smaller share of it are not named."""
_VOTES, _MOSTLY = 0.5, 0.8
"""The least share of the collectives to which the rank came last, or of all lateness that is its
own: of two ranks, either comes last to half of those that nobody waits for."""
_SHAPES = (
    "If shapes change from step to step, pad them or mark them as dynamic; TORCH_LOGS=recompiles "
    "says why."
)
_Windows = dict[str, list["LateRank"]]
"""By the name of each window."""


def device_findings(device: Device, analysis: Analysis | None = None) -> tuple[Finding, ...]:
    """Return the findings in the traces of a run's windows, the largest first.

    With *analysis*, seconds are those of its median clean step: recording slows the host down, and
    what the device does takes as long without it. Else they are those of a recorded step.
    """
    usual = _Usual({}, None, ())
    if analysis is not None and analysis.clean.median_s:
        phases = {one.name: one.median_s for one in analysis.phases}
        usual = _Usual(phases, analysis.clean.median_s, analysis.clean.steps)
    found = [*_of_roles(device, usual), *_of_compiler(device, usual), *_of_ranks(device, usual)]
    return tuple(sorted(found, key=lambda finding: -finding.seconds))


def late_in(device: Device, step: Step) -> tuple[Finding, ...]:
    """Return the ranks that come last to the collectives of one step, if windows recorded it."""
    ours = str(step.step)
    late = tuple(one for one in device.late if one.window.partition("/")[0] == ours)
    phases = {one.name: one.seconds for one in step.phases}
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
            seconds, of_s, phases = _of_a_step(ones, of, usual, _on_device)
            if not of_s or seconds / of_s < least:
                continue
            worst, traces = max(ones, key=of), f"{len(ones)} trace{'s' * (len(ones) != 1)}"
            yield _finding(
                f"{role.role}: {title} {seconds / of_s:.0%} of {listed(phases)}.",
                (
                    f"{secs(recorded_s)} of {secs(role.temporal.window_s)} in {traces}{more}.",
                    f"{worst.target} in {worst.window} has the most: {secs(of(worst))}.",
                ),
                (seconds, of_s),
                worst,
                usual,
            )


def _of_compiler(device: Device, usual: _Usual) -> Iterator[Finding]:
    """Name the role that waits for `torch.compile`, as where shapes change from step to step."""
    for role in dict.fromkeys(one.role for one in device.captures):
        ones = [one for one in device.captures if one.role == role and one.window_s]
        of, lasted = attrgetter("compile_s"), attrgetter("window_s")
        seconds, of_s, phases = _of_a_step(ones, of, usual, lasted)
        if of_s and seconds / of_s >= _COMPILED:
            worst = max(ones, key=of)
            yield _finding(
                f"{role}: torch.compile compiles for {secs(seconds)}, {seconds / of_s:.0%} of "
                f"{listed(phases)}.",
                (f"{worst.target} in {worst.window} has the most: {secs(of(worst))}.", _SHAPES),
                (seconds, of_s),
                worst,
                usual,
            )


def _of_a_step(
    ones: Sequence[CaptureDevice],
    of: Callable[[CaptureDevice], float],
    usual: _Usual,
    lasted: Callable[[CaptureDevice], float],
) -> tuple[float, float, list[str]]:
    """Return the seconds in a step of one rank, those of its phases, and the names of most."""
    by_phase: defaultdict[str, list[CaptureDevice]] = defaultdict(list)
    for one in ones:
        by_phase[_phase_of(one)].append(one)
    of_s, parts = 0.0, dict[str, float]()
    for phase, own in by_phase.items():
        count = len({(one.target, _step_of(one)) for one in own})
        bad_s = sum(map(of, own)) / count
        span_s = sum(map(lasted, own)) / count
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
        windows: _Windows = defaultdict(list)
        for one in device.late:
            if one.role == role:
                windows[one.window].append(one)
        found = _last(device, usual, windows, {})
        yield from found or _last(device, usual, *_by_turns(device, windows))


def _by_turns(device: Device, windows: _Windows) -> tuple[_Windows, dict[int, str]]:
    """Take ranks that are late together for the first of them, and name it; empty: there are none.

    It is as late as they are on average, and came last as often as all of them.
    """
    late: defaultdict[int, float] = defaultdict(float)
    for one in (one for ones in windows.values() for one in ones):
        late[one.rank] += one.late_s
    ranks, role = sorted(late), one.role
    hosts = {one.rank: one.host for one in device.captures if one.role == role}
    places, host = slow_of([late[one] for one in ranks], [hosts[one] for one in ranks])
    own = [ranks[place] for place in places]
    if len(own) == 1:
        return {}, {}
    merged: _Windows = {}
    for window, ones in windows.items():
        mine = [one for one in ones if one.rank in own]
        merged[window] = [one for one in ones if one.rank not in own]
        if mine:
            late_s, votes = sum(one.late_s for one in mine), sum(one.votes for one in mine)
            first = attrs.evolve(mine[0], rank=own[0], late_s=late_s / len(mine), votes=votes)
            merged[window].append(first)
    return merged, {own[0]: f"{together(own, host)} are"}


def _last(
    device: Device, usual: _Usual, windows: _Windows, names: Mapping[int, str]
) -> list[Finding]:
    """Find the rank that comes last to most collectives in every window."""
    last = [one for ones in windows.values() if (one := _last_of(ones)) is not None]
    if len(last) < len(windows) or len({one.rank for one in last}) != 1:
        return []
    # The others wait as much longer than the late one does.
    waits = [_wait_s(ones, one) for ones, one in zip(windows.values(), last, strict=True)]
    role, rank = last[0].role, last[0].rank
    who = names.get(rank, f"rank {rank} is")
    mine = [one for one in device.captures if (one.role, one.rank) == (role, rank)
            and one.window in windows]  # fmt: skip
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
            f"{role}: {who} the last to reach collectives, and the others wait "
            f"{secs(sum(waits) / steps)}.",
            (
                f"This was so in {votes} of {count} collectives, in {many}.",
                f"There, the others wait {secs(sum(waits))} longer in collectives.",
            ),
            (sum(waits) / steps, span_s / steps),
            mine[0],
            usual,
        )
    ]


def _last_of(ones: Sequence[LateRank]) -> LateRank | None:
    """Return the rank that comes latest by far, or last to most collectives."""
    latest, late_s = max(ones, key=lambda one: one.late_s), sum(one.late_s for one in ones)
    if latest.late_s >= _MOSTLY * late_s > 0:
        return latest
    voted = max(ones, key=lambda one: (one.votes, one.late_s))
    return voted if voted.votes >= _VOTES * voted.collectives else None


def _phase_of(one: CaptureDevice) -> str:
    """`7/update_actor.1` is the second `update_actor` of its step."""
    name, _, number = one.window.partition("/")[2].rpartition(".")
    return name if number.isdecimal() else one.window.partition("/")[2]


def _step_of(one: CaptureDevice) -> str:
    return one.window.partition("/")[0]


def _wait_s(ones: Sequence[LateRank], last: LateRank) -> float:
    others = [one.late_s for one in ones if one.rank != last.rank]
    return last.late_s - sum(others) / len(others) if others else 0.0


def _on_device(one: CaptureDevice) -> float:
    return one.temporal.window_s if one.temporal else 0.0


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
