"""Findings from devices: exposed communication, a host that is too slow, a late rank."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rlprof_report.values import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report.device.values import CaptureDevice, Device, LateRank

_EXPOSED, _LAUNCH_BOUND = 0.10, 0.20
"""The least shares of a window for a finding."""
_LATE = 0.05
"""The least share of a window that the others wait for one rank."""
_VOTES = 0.5
"""The least share of the collectives to which the rank came last."""


def device_findings(device: Device) -> tuple[Finding, ...]:
    """Return the findings in the traces of a run's windows, the largest share first.

    Seconds and shares are those of the windows with traces, not of a step.
    """
    found = [*_of_roles(device), *_of_ranks(device)]
    return tuple(sorted(found, key=lambda finding: -finding.share))


def _of_roles(device: Device) -> Iterator[Finding]:
    for role in device.roles:
        ones = [one for one in device.captures if one.role == role.role and one.temporal]
        if role.temporal is None or role.idle is None or not role.temporal.window_s:
            continue
        window_s = role.temporal.window_s
        longest = next((one.name for one in role.kernels if one.kind == "communication"), "")
        operator = role.operators[0].name if role.operators else ""
        for seconds, least, of, title, more in (
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
            if seconds / window_s < least:
                continue
            worst = max(ones, key=of)
            yield _finding(
                f"{role.role}: {title} {seconds / window_s:.0%} of the recorded windows.",
                (
                    f"{seconds:.3f} of {window_s:.3f} s in {len(ones)} traces{more}.",
                    f"{worst.target} in {worst.window} has the most: {of(worst):.3f} s.",
                ),
                seconds / len(ones),
                seconds / window_s,
                worst,
            )


def _of_ranks(device: Device) -> Iterator[Finding]:
    """Name the rank that comes last to most collectives in every window of its role."""
    windows: defaultdict[str, defaultdict[str, list[LateRank]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for late in device.late:
        windows[late.role][late.window].append(late)
    for role, by_window in windows.items():
        last = [max(ones, key=lambda one: (one.votes, one.late_s)) for ones in by_window.values()]
        if len({one.rank for one in last}) > 1 or not all(_is_late(one) for one in last):
            continue
        # The others wait as much longer than the late one does.
        waits = [_wait_s(ones, one) for ones, one in zip(by_window.values(), last, strict=True)]
        shown = [one for one in device.captures if one.role == role and one.window in by_window]
        mine = [one for one in shown if one.rank == last[0].rank]
        span_s = sum(one.temporal.window_s for one in mine if one.temporal)
        if not mine or not span_s or sum(waits) / span_s < _LATE:
            continue
        votes, count = sum(one.votes for one in last), sum(one.collectives for one in last)
        yield _finding(
            f"{role}: rank {last[0].rank} comes last to collectives; the others wait for it.",
            (
                f"It was last in {votes} of {count} collectives, in {len(last)} windows.",
                f"The others wait {sum(waits):.3f} s longer in collectives than it does.",
            ),
            sum(waits) / len(last),
            sum(waits) / span_s,
            mine[0],
        )


def _is_late(one: LateRank) -> bool:
    return one.votes >= _VOTES * one.collectives


def _wait_s(ones: Sequence[LateRank], last: LateRank) -> float:
    others = [one.late_s for one in ones if one.rank != last.rank]
    return last.late_s - sum(others) / len(others) if others else 0.0


def _exposed(one: CaptureDevice) -> float:
    return one.temporal.exposed_communication_s if one.temporal else 0.0


def _launch_bound(one: CaptureDevice) -> float:
    return one.idle.launch_bound_s if one.idle else 0.0


def _finding(
    title: str, evidence: tuple[str, ...], seconds: float, share: float, worst: CaptureDevice
) -> Finding:
    first = worst.window.partition("/")[0].partition("-")[0]
    step = int(first) if first.isdecimal() else None
    return Finding(
        cause="device",
        title=title,
        evidence=evidence,
        seconds=seconds,
        bound_s=seconds,
        share=share,
        steps=() if step is None else (step,),
        where=(worst.target, worst.window, worst.file),
        step=step,
    )
