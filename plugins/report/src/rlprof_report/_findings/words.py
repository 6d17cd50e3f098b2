"""Findings in words: title, evidence, where to look, what to record next."""

from __future__ import annotations

import shlex
from math import ceil
from typing import TYPE_CHECKING

from rlprof.types import DRIVER
from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._findings.facts import bound_of
from rlprof_report._plain import argument, secs
from rlprof_report.values import Finding
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlprof import Run
    from rlprof_report._findings.weigh import Weighed
    from rlprof_report.values import Analysis

_AHEAD_S = 20.0
"""Time to paste a command; the run sees a request within two seconds."""
_LEAST_S = 1e-3


def finding_of(weighed: Weighed, run: Run, *, clean: int, at: int | None) -> Finding:
    """Return *weighed* as a finding; *at*: the step that several ranks would record."""
    measure, count, role = weighed.measure, len(weighed.steps), weighed.measure.role
    if measure.cause == "slow step" and ROLLOUT.search(measure.phase):  # its engines do the work
        engines = (one.role for one in run.attached if one.target.replica is not None)
        role = next(engines, role)
    title, whole_s = measure.sentence, weighed.seconds / weighed.share
    if weighed.changes and measure.who:
        title = title.removesuffix(".") + "; other steps have another one."
    if weighed.is_rare:
        head = f"In {count} of {clean} steps: " if count > 1 else f"In step {weighed.steps[0]}: "
        title = head + title
    spread = (
        f"That is {secs(weighed.seconds)}, {weighed.share:.0%} of a step"
        f" ({'median ' if count > 1 else ''}{secs(whole_s)}), in {numbered(weighed.steps)}."
    )
    return Finding(
        cause=measure.cause,  # type: ignore[arg-type]
        title=title,
        evidence=(spread, *measure.evidence),
        seconds=weighed.seconds,
        bound_s=min(measure.bound_s or bound_of(weighed.seconds, whole_s), whole_s),
        share=weighed.share,
        steps=weighed.steps,
        step=weighed.step,
        where=measure.where,
        command=command_of(
            run,
            role,
            None if weighed.changes else measure.rank,
            measure.phase,
            at=at,
            with_torch=measure.cause not in ("replica", "tail"),
        ),
    )


def numbered(steps: Sequence[int]) -> str:
    """Write steps short: `step 3`, `steps 2-9 and 12`, `24 steps from 2 to 40`."""
    words = ranges_of(steps)
    if len(words) > 4:
        return f"{len(steps)} steps from {min(steps)} to {max(steps)}"
    joined = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"step{'s' if len(steps) > 1 else ''} {joined}"


def step_ahead(analysis: Analysis) -> int | None:
    """Return a step of a live run that all ranks can still record; None: the run is over."""
    if analysis.state != "running":
        return None
    last = analysis.steps[-1]
    seconds = max(analysis.clean.median_s or last.seconds, _LEAST_S)
    return last.step + max(2, ceil(_AHEAD_S / seconds))


def command_of(
    run: Run, role: str, rank: int | None, phase: str, *, at: int | None, with_torch: bool = True
) -> str:
    """Return the command that records *role* in this run, or in the next one if this is over.

    Empty if no tool can: the driver of a fleet records nothing itself. A role without a tool is
    recorded by torch's profiler if *with_torch*. All ranks record the same step, *at*. Only
    continuous mode records what is in no phase. Once `rlprof attach` has let go, only it reaches
    the training.
    """
    lacks_tool = not _has_tool(run, role)
    known = {one.target.role for one in run.processes} | {one.role for one in run.attached}
    if role == DRIVER or role not in known or (lacks_tool and not with_torch):
        return ""
    if run.is_guest and not run.is_running:
        return "rlprof attach --steps 1"
    words = ["--role", role, "--rank", str(_rank(run, role, rank))]
    words += ["--phase", phase] if phase else ["--mode", "continuous"]
    words += ["--at", str(at)] if rank is None and at is not None else []
    words += ["--tool", "torch"] if lacks_tool else []
    return f"rlprof capture {argument(_folder(run))} {shlex.join(words)}"


def _folder(run: Run) -> Path:
    """Return the run itself while it is live, else the folder of the next one."""
    if run.is_running:
        return run.path
    path = run.path if run.path.name else run.path.resolve()
    return path.parent if run.attempt == 1 else path.parent.parent


def _rank(run: Run, role: str, rank: int | None) -> int | str:
    """Return the rank to record; of a replica the first that it holds."""
    if rank is None:
        return "all"
    for one in run.attached:
        if one.role == role and one.target.replica == rank and one.ranks:
            return one.ranks[0]
    return rank


def has_tool(run: Run) -> bool:
    """Whether the config of *run* names a tool, or an engine that records."""
    roles = run.config.get("roles")
    return any(_has_tool(run, role) for role in ("", *(roles if isinstance(roles, dict) else ())))


def _has_tool(run: Run, role: str) -> bool:
    roles = run.config.get("roles")
    own = roles.get(role) if isinstance(roles, dict) else None
    own = own if isinstance(own, dict) else {}
    tool = own["tool"] if own.get("tool") is not None else run.config.get("tool")
    return bool(own.get("engine")) or tool not in (None, [], (), "none", ["none"])
