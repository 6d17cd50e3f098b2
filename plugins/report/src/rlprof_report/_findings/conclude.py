"""Adds findings and verdict to an analysis: for the run, or for one step of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof.errors import RlprofError
from rlprof.types import DRIVER
from rlprof_report._figures.intervals import clipped, covered, merged
from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._findings import verdict
from rlprof_report._findings.causes import measures_of
from rlprof_report._findings.facts import Context, Measure
from rlprof_report._findings.lost import unknown_of
from rlprof_report._findings.met import met_of
from rlprof_report._findings.odd import long_though_touched, odd_lengths
from rlprof_report._findings.queues import queues_of
from rlprof_report._findings.slow_steps import slow_step, unexplained
from rlprof_report._findings.weigh import Row, Weighed, in_one, rows_of, weigh, weigh_one
from rlprof_report._findings.words import command_of, finding_of, has_tool, numbered, step_ahead
from rlprof_report._plain import secs
from rlprof_report.device._findings import device_findings, late_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof import Run
    from rlprof_report._findings.facts import Facts, Silent
    from rlprof_report.values import Analysis, Finding
    from rlprof_report.values.step import Step

_NEIGHBOURS = 10
_SHORT_S = 20.0
"""Steps in which a second matters."""
_LATE = (
    "rlprof attach may see a step begin a second late, so a step may have been a second longer or "
    "shorter; its phases are exact."
)


def conclude(
    analysis: Analysis,
    run: Run,
    facts: Sequence[Facts],
    silent: Silent,
    lost: Sequence[str],
    *,
    step: int | None,
    is_stuck: bool,
) -> Analysis:
    """Add findings and verdict, and note what is unknown because files are *lost*."""
    names = [process.name for process in run.processes]
    leader = names.index(analysis.leader)
    leads_fleet = run.processes[leader].target.role == DRIVER
    context = Context(run.processes, leader, leads_fleet, silent, is_guest=run.is_guest)
    notes: list[str] = []
    median_s = analysis.clean.median_s
    if run.is_guest and median_s is not None and median_s < _SHORT_S:
        notes.append(_LATE)
    devices = () if analysis.device is None else device_findings(analysis.device, analysis)
    if step is not None:
        findings, answer = _of_step(analysis, run, facts, context, step)
        known = {one.title for one in findings}
        findings += [one for one in devices if one.title not in known]
    else:
        weighed, clean = _of_run(analysis, facts, context), len(analysis.clean.steps)
        findings = [finding_of(one, run, clean=clean, at=step_ahead(analysis)) for one in weighed]
        odd, next_ = odd_lengths(analysis, has_findings=bool(findings))
        findings = _by_size(findings, devices, clean)
        touched = long_though_touched(analysis)
        if touched and not findings and not odd:
            odd, next_ = touched
        elif touched:
            notes.append(" ".join(touched))
        queues = queues_of(analysis, run)
        if queues:
            findings = [_queued(one, queues) for one in findings]
        answer = verdict.of_run(
            analysis, findings, odd=odd, is_guest=run.is_guest, queues=queues,
            command=_command(analysis, run, context),
        )  # fmt: skip
        notes += [queues] if queues and queues not in answer else []
        if next_:
            notes.append(next_ if odd in answer else f"{odd} {next_}")
    analysis = attrs.evolve(
        analysis,
        whose=context.name(leader),
        findings=tuple(findings),
        verdict=verdict.with_lost(verdict.with_silent(answer, silent), lost),
    )
    unknown = unknown_of(analysis, is_whole=not lost)
    met = () if is_stuck else met_of(analysis, run, step=step)
    return attrs.evolve(analysis, notes=(*analysis.notes, *unknown, *met, *notes))


def _command(analysis: Analysis, run: Run, context: Context) -> str:
    """Return the command that records the longest phase where it is worked on."""
    phase = max(analysis.phases, key=lambda one: one.mean_s, default=None)
    of_all = "rlprof capture --next 1" + ("" if has_tool(run) else " --tool torch")
    if phase is None:
        return of_all
    engines = [one.role for one in run.attached if one.target.replica is not None]
    if engines and ROLLOUT.search(phase.name):
        return command_of(run, engines[0], None, phase.name, at=None, with_torch=False) or of_all
    ranks = (one for step in analysis.steps for one in step.ranks if one.phase == phase.name)
    role = next((one.role for one in ranks), context.processes[context.leader].target.role)
    return command_of(run, role, None, phase.name, at=None) or of_all


def _queued(finding: Finding, queues: str) -> Finding:
    """Let a trainer that waits for engines hear of their *queues*, in place of advice."""
    if finding.cause != "wait" or ": " in finding.title:
        return finding
    return attrs.evolve(finding, title=f"{finding.title} {queues}", evidence=finding.evidence[:1])


def _by_size(findings: Sequence[Finding], devices: Sequence[Finding], clean: int) -> list[Finding]:
    """Put those of *devices* where the seconds of all steps say; the others keep their order."""
    left, both = list(devices), []
    for one in findings:
        while left and left[0].seconds > one.seconds * len(one.steps) / max(1, clean):
            both.append(left.pop(0))
        both.append(one)
    return both + left


def _of_run(analysis: Analysis, facts: Sequence[Facts], context: Context) -> list[Weighed]:
    """Weigh the causes over the clean steps of the run."""
    clean, usual_s = [one for one in facts if one.step.state == "clean"], analysis.clean.median_s
    if len(clean) < 2 or usual_s is None:
        return []
    steps = [one.step for one in clean]
    rows = rows_of([measures_of(one, context) for one in clean])
    weighed = weigh(steps, rows)
    return weighed + unexplained(steps, rows, weighed, usual_s, context)


def _of_step(
    analysis: Analysis, run: Run, facts: Sequence[Facts], context: Context, number: int
) -> tuple[list[Finding], str]:
    places = [place for place, one in enumerate(facts) if one.step.step == number]
    if not places:
        there = numbered([one.step for one in analysis.steps])
        raise RlprofError(f"{run.path}: step {number}: is not in this run; it has {there}")
    own = facts[places[-1]]
    near = sorted(
        (place for place, one in enumerate(facts) if one.step.state == "clean" and one is not own),
        key=lambda place: abs(place - places[-1]),
    )[:_NEIGHBOURS]
    peers = [facts[place] for place in sorted(near)]
    findings: list[Finding] = []
    shared: list[tuple[Weighed, Weighed]] = []
    usual_s = None
    if len(peers) >= 2:
        steps = [one.step for one in peers]
        usual_s = float(np.median([one.seconds for one in steps]))
        measures = [one for one in measures_of(own, context) if not _is_ours(one, own.step)]
        row = rows_of([[*measures, *_ours(own.step)]])[0]
        rows = rows_of([measures_of(one, context) for one in peers])
        shared = _shared(own.step, row, _of_run(analysis, facts, context))
        weighed = weigh_one(own.step, row, steps, rows)
        late = () if analysis.device is None else late_in(analysis.device, own.step)
        more = own.step.seconds - usual_s
        explained = [*(one.per_step_s for one in weighed), *(one.seconds for one in late)]
        if not any(seconds >= more / 2 for seconds in explained) and more >= 0.1 * usual_s:
            measure = slow_step(own.step, steps, usual_s, context)
            weighed.append(in_one(own.step, (measure.cause, ""), measure, more))
        shown = [one.measure for one, _ in shared]
        at = step_ahead(analysis)
        others = [finding_of(one, run, clean=1, at=at) for one in weighed
                  if one.measure not in shown]  # fmt: skip
        others = sorted([*others, *late], key=lambda one: -one.seconds)
        findings = [_also(finding_of(one, run, clean=1, at=at), of_run) for one, of_run in shared]
        if others and findings and others[0].seconds > findings[0].seconds:
            findings, shared = [*others, *findings], []
        else:
            findings += others
    numbers = [one.step.step for one in peers]
    return findings, verdict.of_step(own.step, usual_s, numbers, findings, shared=len(shared))


def _shared(step: Step, row: Row, of_run: Sequence[Weighed]) -> list[tuple[Weighed, Weighed]]:
    """Find causes of the run that *step* has, as they are in it and in the run."""
    found: list[tuple[Weighed, Weighed]] = []
    for one in of_run:
        measure = row.get(one.key)
        is_rare_here = one.is_rare and step.step not in one.steps
        if any(measure is other.measure for other, _ in found):
            continue
        if measure is not None and measure.seconds >= one.seconds / 2 and not is_rare_here:
            found.append((in_one(step, one.key, measure, measure.seconds), one))
    return found


def _also(finding: Finding, of_run: Weighed) -> Finding:
    """Say where else the run has *finding*."""
    if of_run.steps == (of_run.step,) == (finding.step,):
        return finding
    also = f"This step is typical of {numbered(of_run.steps)}."
    if finding.step != of_run.step:
        also = f"Step {of_run.step} is typical of {numbered(of_run.steps)}: {secs(of_run.seconds)}."
    return attrs.evolve(finding, evidence=(finding.evidence[0], also, *finding.evidence[1:]))


def _is_ours(measure: Measure, step: Step) -> bool:
    """Whether half of it is ours: recordings start and stop between phases, or in its phase."""
    if not measure.phase:
        return step.cost_s >= measure.seconds / 2
    ours = merged((round(one.start_s * 1e9), round(one.end_s * 1e9)) for one in step.touches)
    inside = sum(
        covered(clipped(ours, round(phase.start_s * 1e9), round(phase.end_s * 1e9)))
        for phase in step.phases
        if phase.name == measure.phase
    )
    return inside > 0 and inside / 1e9 >= measure.seconds / 2


def _ours(step: Step) -> Iterator[Measure]:
    if step.cost_s > 0:
        longest = max(step.touches, key=lambda one: one.end_s - one.start_s)
        yield Measure(
            "recording",
            step.cost_s,
            longest.target,
            f"rlprof itself takes {secs(step.cost_s)} of the step.",
            (f"The longest is the {longest.what} of {longest.tool} on {longest.target}.",),
            (f"window {longest.window}",),
            bound_s=step.cost_s,
        )
