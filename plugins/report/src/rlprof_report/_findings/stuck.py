"""A run in which nothing ends any more, and the ranks that the others wait for."""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from rlprof_report._plain import listed, secs, whose
from rlprof_report._spans.rows import NO_STEP
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

    from rlprof import Run
    from rlprof_report._spans.recorded import Recorded
    from rlprof_report.values.step import Step

_LEAST_S = 15.0
"""The shortest standstill; calls of a fleet's members are known some seconds late."""
_TIMES = 2.0
"""A standstill takes this many times the longest step, or more."""


def stuck_of(run: Run, recorded: Recorded, steps: Sequence[Step]) -> str:
    """Say since when no phase has ended, and which ranks have not ended what others have.

    Empty: the run goes on, or it ended as it should.
    """
    phases = recorded.phases[~recorded.phases["nested"] & ~recorded.phases["by_driver"]]
    phases = phases[phases["step"] != NO_STEP]
    whole = phases[~phases["broken_off"]]
    longest_s = max((one.seconds for one in steps[:-1]), default=0.0)
    if not (len(whole) and longest_s):
        return ""
    is_cut = phases["broken_off"][phases["end"].argmax()]
    if not (run.is_running or is_cut or any(one.state == "died" for one in run.processes)):
        return ""
    seconds = (_now_ns(run, recorded) - int(whole["end"].max())) / 1e9
    if seconds < max(_LEAST_S, _TIMES * longest_s):
        return ""
    when = "has ended for" if run.is_running else "ended in the last"
    words, places = _late(recorded, whole) or _together(recorded, whole)
    where = ""
    if run.is_running:
        here = run.processes[places[0]].here
        where = f" See where it stands: py-spy dump --pid {here.pid} on {here.host}."
    return (
        f"No phase {when} {secs(seconds)}, and no step took longer than {secs(longest_s)}: "
        f"{words}.{where}"
    )


def _now_ns(run: Run, recorded: Recorded) -> int:
    """Return the time now, or the last sign of a run that has ended."""
    if run.is_running:
        return time.time_ns()
    signs = [one.clocks[-1].realtime_ns for one in run.processes if one.clocks]
    return max(*signs, int(recorded.phases["end"].max()))


def _late(recorded: Recorded, whole: np.ndarray) -> tuple[str, list[int]] | None:
    """Name the ranks of a role that lack the first phase of the last step that others ended.

    A phase that a rank never had is not missing.
    """
    roles: defaultdict[str, set[int]] = defaultdict(set)
    for place in set(whole["process"].tolist()):
        roles[recorded.processes[place].target.role].add(place)
    for places in roles.values():
        own = [row for row in whole[whole["end"].argsort()] if row["process"] in places]
        last = max(int(row["step"]) for row in own)
        known = {(int(row["process"]), int(row["name"])) for row in own if row["step"] != last}
        ended: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for row in own:
            if row["step"] == last:
                ended[int(row["name"]), int(row["occurrence"])].add(int(row["process"]))
        for (name, _), others in ended.items():
            late = sorted(p for p in places - others if (p, name) in known)
            if late:
                has = "has" if len(late) == 1 else "have"
                what = f"{recorded.words[name]} of step {last}"
                who, rest = _named(recorded, late), _named(recorded, others)
                return f"{who} {has} not ended {what}, and {rest} did", late
    return None


def _together(recorded: Recorded, whole: np.ndarray) -> tuple[str, list[int]]:
    """Name the last phase that ended, and the one that follows it in the step before."""
    last = whole[whole["end"].argmax()]
    same = whole[(whole["step"] == last["step"]) & (whole["name"] == last["name"])]
    places, name = sorted(set(same["process"].tolist())), recorded.words[last["name"]]
    own = whole[(whole["process"] == last["process"]) & (whole["step"] < last["step"])]
    names = [recorded.words[one] for one in own[own["end"].argsort()]["name"].tolist()]
    after = {one for before, one in pairwise(names) if before == name}
    follows = f"; {listed(sorted(after))} usually follows" if len(after) == 1 else ""
    return f"{_named(recorded, places)} ended {name} of step {last['step']}{follows}", places


def _named(recorded: Recorded, places: Iterable[int]) -> str:
    targets = [recorded.processes[place].target for place in places]
    if any(one.replica is not None for one in targets):
        return listed([whose(one) for one in targets])
    return f"{targets[0].role} {listed(ranges_of([one.rank for one in targets]))}"
