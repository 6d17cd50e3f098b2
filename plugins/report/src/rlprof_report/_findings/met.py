"""Phases in which ranks meet: their times do not say who is late, a recording may."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._findings.words import command_of, step_ahead
from rlprof_report._plain import listed, secs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof import Run
    from rlprof_report.values import Analysis, Finding, PhaseSummary

_ALIKE = 0.05
"""Ranks whose times differ by a smaller share may wait for one another."""
_LARGE = 0.2
"""Phases of a smaller share are not worth a note."""


def met_in(analysis: Analysis, phase: PhaseSummary, *, perhaps: bool = False) -> str:
    """Return the role whose ranks meet in *phase*, so that all end late; empty: none.

    With *perhaps*, also where all take as long and so may wait for one another.
    """
    clean = [one for one in analysis.steps if one.state == "clean"]
    found = [r for one in clean for r in one.ranks if r.phase == phase.name]
    is_rollout = any(one.rollout for one in clean) and ROLLOUT.search(phase.name)
    if phase.share < _LARGE or is_rollout or not found:
        return ""
    alike = _ALIKE if perhaps else -1.0
    together = [one.meets or max(one.wait_s, one.waste_s) <= alike * one.max_s for one in found]
    return found[0].role if sum(together) * 2 >= len(together) else ""


def met_of(analysis: Analysis, run: Run, *, step: int | None) -> Iterator[str]:
    """Name large phases that hide a late rank, unless a finding (of *step*) names that rank."""
    if step is not None and analysis.findings:
        return
    most = 1 if step is not None else len(analysis.clean.steps) / 2
    least_s = max((one.mean_s for one in analysis.phases), default=0.0)
    found_s = max((one.seconds * len(one.steps) for one in analysis.findings), default=0.0)
    found_s /= max(1, len(analysis.clean.steps))
    for phase in analysis.phases:
        perhaps = phase.mean_s >= max(least_s, 2 * found_s)
        role = met_in(analysis, phase, perhaps=perhaps)
        if not role or any(_names(one, role, most) for one in analysis.findings):
            continue
        next_ = _recorded(analysis, run, role, phase)
        if not next_:
            command = command_of(run, role, None, phase.name, at=step_ahead(analysis))
            when = "" if run.is_running or run.is_guest else " while the next run is live"
            next_ = f" Record it once{when}: {command}" if command else ""
        how = f"take about as long in {phase.name}"
        if met_in(analysis, phase):
            how = f"end {phase.name} together"
        yield f"Ranks of {role} {how}, so their times do not show which rank is late.{next_}"


def _names(finding: Finding, role: str, least: float) -> bool:
    """Whether *finding* names the late rank of *role* in at least this many steps."""
    if finding.cause == "device":
        return finding.title.startswith(f"{role}: ") and "last to reach" in finding.title
    is_ones = finding.cause in ("straggler", "alone", "data", "gc") and len(finding.steps) >= least
    return is_ones and any(one.startswith(f"{role} ") for one in finding.where)


def _recorded(analysis: Analysis, run: Run, role: str, phase: PhaseSummary) -> str:
    """Return what windows of several ranks show; empty: there is none."""
    ranks: defaultdict[str, set[int]] = defaultdict(set)
    for one in run.captures:
        is_of_it = one.target.role == role and one.window.phase in (None, phase.name)
        if is_of_it and any(artifact.kind == "trace" for artifact in one.artifacts):
            ranks[one.window.id].add(one.target.rank)
    windows = [window for window, own in ranks.items() if len(own) > 1]
    if not windows or analysis.device is None:
        return ""
    late: defaultdict[int, list[float]] = defaultdict(list)
    for one in analysis.device.late:
        if one.role == role and one.window in windows:
            late[one.rank].append(one.late_s)
    last = max(late, key=lambda rank: sum(late[rank]), default=0)
    if late and sum(late[last]) >= _ALIKE * phase.mean_s * len(windows):
        late_rank = f"rank {last} comes last: others wait up to {secs(max(late[last]))} for it"
        return f" In the traces of {listed(windows)}, {late_rank}."
    why = "no rank comes late to collectives" if late else "they hold no shared collective"
    return f" Nor do the traces of {listed(windows)}: {why}."
