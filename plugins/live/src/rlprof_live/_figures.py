"""Figures of the last step for a logger, made from spans as they are written.

The helper thread takes each span as it passes, and makes the figures when a step has ended. They
equal those that a report makes from the run folder; docs/api.md defines them.
"""

from __future__ import annotations

import math
import re
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rlprof.rundir import as_json, number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlprof.rundir import RawSpan

_ROLLOUT = re.compile(r"roll_?out|generat|\bgen\b|gen_|sampl", re.IGNORECASE)
"""Names of phases in which engines generate."""
_REFUSED = re.compile(r"[^\w .:-]")
"""Characters in a name for which MLflow would raise, in the middle of training."""
_MOST_PHASES = 10_000
_MOST_PARTS = 500_000
"""Most of one step; a step with more has no figures of phases or of trajectories."""
_LATE = 0.95
_MOST_STEPS = 8
"""Steps whose spans are kept: the running one, and earlier ones whose spans end late."""

_WHOLE, _REQUEST, _OTHER = range(3)
_COLUMNS = 7


class Figures:
    """Takes the spans of a process in the order they ended."""

    def __init__(self, since_ns: int = 0) -> None:
        self._since_ns = since_ns
        """A step that began before has spans that it has not seen."""
        self._steps: dict[int, _Step] = {}

    def take(self, raw: RawSpan) -> dict[str, float] | None:
        """Add a span up; return the figures of a step that has ended."""
        kind, name, start, _, step, _, _, _, _, noted = raw
        if step is None or (
            kind == "span" and (noted is None or not ("trajectory" in noted or name == "request"))
        ):
            return None
        found = self._steps.get(step)
        if found is None:
            found = self._steps[step] = _Step()
            if len(self._steps) > _MOST_STEPS:
                del self._steps[min(self._steps)]
        if kind == "span":
            found.add_part(raw, noted or {})
        elif kind == "phase":
            found.add_phase(raw)
        else:
            self._steps.clear()
            return found.figures(raw) if start >= self._since_ns else None
        return None


class _Step:
    """The spans of one step, as far as figures need them."""

    def __init__(self) -> None:
        self._phases: list[RawSpan] = []
        self._parts = array("q")
        """Start, end, trajectory, what it is, tokens, replica, ns in a queue; and so on."""
        self._trajectories: dict[Any, int] = {}
        self._replicas: dict[Any, int] = {}

    def add_phase(self, raw: RawSpan) -> None:
        if len(self._phases) <= _MOST_PHASES:
            self._phases.append(raw)

    def add_part(self, raw: RawSpan, noted: Mapping[str, Any]) -> None:
        if len(self._parts) > _MOST_PARTS * _COLUMNS:
            return
        _, name, start, end, _, _, _, _, _, _ = raw
        what = _WHOLE if name == "trajectory" else _REQUEST if name == "request" else _OTHER
        path, tokens, replica, queued_ns = noted.get("trajectory"), 0, -1, 0
        number = -1
        if path is not None:
            key = path if type(path) in (str, int) else as_json(path)
            number = self._trajectories.setdefault(key, len(self._trajectories))
        if what != _OTHER:
            tokens = _count(noted.get("tokens"))
        if what == _REQUEST:
            replica = noted.get("replica", -1)
            key = replica if type(replica) in (str, int) else as_json(replica)
            replica = self._replicas.setdefault(key, len(self._replicas))
            queued_ns = _ns(noted.get("queued_s"))
        self._parts.extend((start, end, number, what, tokens, replica, queued_ns))

    def figures(self, raw: RawSpan) -> dict[str, float]:
        """Make the figures, now that the step has ended."""
        _, _, start, end, step, _, step_id, _, _, _ = raw
        found = {"rlprof/step": float(step or 0), "rlprof/step_s": (end - start) / 1e9}
        if len(self._phases) > _MOST_PHASES:
            return found
        outermost = [
            (phase[1], max(phase[2], start), min(phase[3], end))
            for phase in _outermost(self._phases, step_id)
        ]
        for name, began, ended in outermost:
            key = _key(name)
            found[key] = found.get(key, 0.0) + (ended - began) / 1e9
        covered = _covered([(began, ended) for _, began, ended in outermost])
        found["rlprof/unaccounted_s"] = (end - start - covered) / 1e9
        if 0 < len(self._parts) <= _MOST_PARTS * _COLUMNS:
            found |= _of_rollout(list(self._rows()), outermost, (start, end))
        return found

    def _rows(self) -> Iterator[tuple[int, ...]]:
        columns = iter(self._parts)
        return zip(*[columns] * _COLUMNS, strict=True)


@lru_cache(1024)
def _key(phase: str) -> str:
    return f"rlprof/phase/{_REFUSED.sub('_', phase)}_s"


def _outermost(phases: Sequence[RawSpan], step_id: int) -> Iterable[RawSpan]:
    """Leave out phases that lie within another one: as its child, or on its thread."""
    if {phase[7] for phase in phases} == {step_id}:
        return phases
    ids = {phase[6] for phase in phases}

    def is_within(phase: RawSpan) -> bool:
        _, _, start, end, _, thread, own_id, parent, _, _ = phase
        return parent in ids or (
            parent not in (None, step_id)
            and any(
                one[5] == thread and one[2] <= start and one[3] >= end and one[6] != own_id
                for one in phases
            )
        )

    return [phase for phase in phases if not is_within(phase)]


def _of_rollout(
    parts: list[tuple[int, ...]], phases: Sequence[tuple[str, int, int]], step: tuple[int, int]
) -> dict[str, float]:
    """Make the figures of trajectories and requests that began in the rollout."""
    phase = _rollout_phase([row[0] for row in parts if row[3] == _WHOLE] or
                           [row[0] for row in parts], phases)  # fmt: skip
    start = min((began for name, began, _ in phases if name == phase), default=step[0])
    end = max((ended for name, _, ended in phases if name == phase), default=step[1])
    parts = [row for row in parts if start <= row[0] < end]
    if any(row[2] >= 0 for row in parts):
        parts = [row for row in parts if row[2] >= 0]
        numbers: Iterable[int] = (row[2] for row in parts)
    else:  # nothing but requests: each stands for a trajectory
        numbers = range(len(parts))
    began, ended = dict[int, int](), dict[int, int]()
    for number, row in zip(numbers, parts, strict=True):
        first, last = row[0], row[1]
        if number not in began or first < began[number]:
            began[number] = first
        if number not in ended or last > ended[number]:
            ended[number] = last
    ended = {number: min(last, end) for number, last in ended.items()}
    if not began:
        return {}
    if not phase:
        start, end = min(began.values()), max(ended.values())
    requests = [row for row in parts if row[3] == _REQUEST]
    tokens = sum(row[4] for row in requests) or sum(row[4] for row in parts if row[3] == _WHOLE)
    seconds = sorted((ended[number] - began[number]) / 1e9 for number in began)
    ends, count = sorted(ended.values()), len(ended)
    late = max(0, min(math.ceil(_LATE * count) - 1, count - 2))
    found = {
        "rlprof/trajectories": float(count),
        "rlprof/trajectory_p99_s": _percentile(seconds, 0.99),
        "rlprof/tail95_s": (ends[-1] - ends[late]) / 1e9,
    }
    if tokens and end > start:
        found["rlprof/tokens"] = float(tokens)
        found["rlprof/tokens_per_s"] = tokens / ((end - start) / 1e9)
    used = _slots_used(requests, end, end - start)
    return found if used is None else {**found, "rlprof/slots_used": used}


def _rollout_phase(begin: Sequence[int], phases: Sequence[tuple[str, int, int]]) -> str:
    """Name the phase in which most trajectories begin; empty if there is none."""
    inside: dict[str, int] = {}
    for name, began, ended in phases:
        here = sum(began <= moment < ended for moment in begin)
        inside[name] = inside.get(name, 0) + here
    named = [name for name in inside if _ROLLOUT.search(name)]
    best = max(named or inside, key=lambda name: inside[name], default="")
    return best if best and inside[best] * 2 >= len(begin) else ""


def _slots_used(requests: Sequence[tuple[int, ...]], end: int, length: int) -> float | None:
    """Return requests that ran over the most that ran at once, all replicas together."""
    edges: dict[int, list[int]] = {}
    running = slots = 0
    for start, ended, _, _, _, replica, queued_ns in requests:
        done = min(ended, end)
        begun = min(start + queued_ns, done)
        running += done - begun
        edges.setdefault(replica, []).extend((begun << 1 | 1, done << 1))
    for own in edges.values():
        now = most = 0
        for edge in sorted(own):  # at one moment, ends come first
            if edge & 1:
                now += 1
                most = max(most, now)
            else:
                now -= 1
        slots += most
    return running / (slots * length) if slots and length > 0 else None


def _covered(stretches: Iterable[tuple[int, int]]) -> int:
    """Return the length of the union."""
    total, until = 0, None
    for start, end in sorted(stretches):
        if until is None or start > until:
            total, until = total + end - start, end
        elif end > until:
            total, until = total + end - until, end
    return total


def _percentile(values: Sequence[float], share: float) -> float:
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def _count(value: Any) -> int:
    if type(value) is int and 0 <= value < 1 << 40:  # nearly always; a span takes microseconds
        return value
    number = _number(value)
    return min(int(number), 1 << 40) if 0 < number < 1 << 63 else 0


def _ns(value: Any) -> int:
    number = 0 if value is None else _number(value)
    return int(number * 1e9) if 0 <= number < 1e9 else 0


def _number(value: Any) -> int | float:
    """Return *value* as its line has it; 0 for what is no number."""
    if type(value) not in (int, float):
        value = None if value is None else number_of(value)
    return value if type(value) in (int, float) else 0
