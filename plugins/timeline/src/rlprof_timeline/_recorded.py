"""The timeline of a run: its processes in order, their spans, windows and traces."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_run import unbroken
from rlprof_timeline._source import Plan, Source, Trace, TraceGroup
from rlprof_timeline._spans import Slice, of_captures, of_span, of_windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlprof import Target
    from rlprof_run import Process, Run, Sample

    Groups = tuple[TraceGroup, ...]

_WALL = "wall clock of each host"
_KINDS = {"driver": 0, "rollout": 2, "agent": 3}
"""The places of roles; all others are trainers."""
_WORDS = re.compile(r"(\D+)(\d{0,9})")


def of_run(run: Run) -> Plan:
    """Read everything but the traces once."""
    left_out: dict[str, str] = {}
    roles = list(run.config.get("roles", ()))
    processes = sorted(run.processes, key=lambda one: _order(one.target, one.name, roles))
    homes = {str(process.target): process.name for process in reversed(processes)}
    groups: defaultdict[str, list[TraceGroup]] = defaultdict(list)
    engines: dict[str, Target] = {}
    for process in processes:
        for target, group in _groups(run, process):
            engines[str(target)] = target
            own = {str(process.target): process.name}
            groups[(homes | own).get(str(target), str(target))].append(group)
    found = [
        (one.target, one.name, _source(run, one, tuple(groups[one.name]), left_out, engines))
        for one in processes
    ]
    for name in engines.keys() - homes.keys():  # a process drives them
        source = Source(name, False, (), tuple(groups[name]), target=name)
        found.append((engines[name], name, source))
    found.sort(key=lambda one: _order(one[0], one[1], roles))
    measured = frozenset(one.here.boot_id for one in processes if one.offset_bound_ns is not None)
    hosts: dict[str, str] = {}
    for process in processes:  # containers of one machine have names of their own
        hosts.setdefault(process.here.boot_id, process.here.host)
    return Plan(
        {
            "run": run.run_id,
            "attempt": run.attempt,
            "method": f"{_WALL}, less what the driver of the fleet measured" if measured else _WALL,
        },
        tuple(source for _, _, source in found),
        left_out,
        run.opened_ns,
        tuple(run.problems),
        run.selection.from_ns,
        run.selection.until_ns,
        hosts=hosts,
        measured=measured,
    )


def _source(
    run: Run, process: Process, groups: Groups, left_out: dict[str, str], engines: dict[str, Target]
) -> Source:
    """Read a process; add to *left_out*, and to *engines* those whose counters it holds."""
    captures = [item for item in run.captures if item.process == process.name]
    own = attrs.evolve(run, processes=(process,))
    problems: list[str] = []
    seen, first = _count(span.start_ns for span in own.spans(problems))
    counted, first_count = _count(_times(own.counters(problems), engines))
    for problem in problems:
        name, _, reason = problem.partition(": ")
        left_out[name] = reason

    def slices(left_out: Mapping[str, str]) -> Sequence[Slice]:
        # A live run has more spans by now; the timeline shows those seen first.
        spans = islice(own.spans(), seen)
        return [
            *map(of_span, spans),
            *of_captures(captures),
            *of_windows(captures, process, left_out),
        ]

    clocks = unbroken(process.clocks)[0]
    begun = [first, first_count, *(capture.opened_ns for capture in captures)]
    begun += [item.start_ns for item in of_captures(captures)]
    target = str(process.target)
    bound = max(clock.bound_ns for clock in clocks)
    about = [
        {"file": f"{kind}/{process.name}.jsonl", "target": target, "events": events,
         "error_ns": bound, "problems": []}
        for kind, events in (("spans", seen), ("counters", counted))
        if kind == "spans" or events
    ]  # fmt: skip
    return Source(
        f"{target} · {process.here.host}",
        process.target.role == "driver",
        tuple(start for start in begun if start is not None),
        groups,
        slices,
        lambda: islice(own.counters(), counted),
        process.here.boot_id,
        target,
        tuple(about),
    )


def _count(times: Iterable[int]) -> tuple[int, int | None]:
    """Return how many there are, and the earliest."""
    count, first = 0, None
    for at in times:
        count += 1
        first = at if first is None else min(first, at)
    return count, first


def _times(samples: Iterable[Sample], targets: dict[str, Target]) -> Iterator[int]:
    """Yield the time of each, and add its target to *targets*."""
    for sample in samples:
        targets[str(sample.target)] = sample.target
        yield sample.time_ns


def _groups(run: Run, process: Process) -> Iterator[tuple[Target, TraceGroup]]:
    """Group the traces of a process that share tracks; yield also whose they are.

    They are grouped by target, because a process may hold several engines, by tool, and by the
    part of the window that they show, or their place in it: two traces of one window may share
    process numbers.
    """
    groups: defaultdict[tuple[Any, ...], list[Trace]] = defaultdict(list)
    titles: dict[tuple[Any, ...], tuple[Target, str]] = {}
    captures = (item for item in run.captures if item.process == process.name)
    for capture in captures:
        found = [artifact for artifact in capture.artifacts if artifact.kind == "trace"]
        seen: Counter[str] = Counter()
        for artifact in found:
            part = artifact.part
            seen[part] += 1
            nth, name = seen[part], f"{capture.tool} · {part}" if part else capture.tool
            key = (*_rank(capture.target), capture.tool, bool(part), _in_order(part), part, nth)
            tool = name if nth == 1 else f"{name} {nth}"
            titles[key] = capture.target, tool
            about = {"target": str(capture.target), "tool": capture.tool,
                     "window": capture.window.id}  # fmt: skip
            is_whole = artifact.status == "whole"
            problems = () if is_whole else (f"{artifact.status}: {artifact.note}",)
            groups[key].append(
                Trace(
                    run.path / artifact.path,
                    artifact.path,
                    about,
                    problems,
                    capture.clock_shift_ns,
                    together=(key[0], key[1], tool, capture.window),
                    host=process.here.boot_id,
                )
            )
    for key in sorted(groups):
        target, tool = titles[key]
        yield target, TraceGroup(tool, tuple(groups[key]))


def _in_order(part: str) -> tuple[tuple[str, int], ...]:
    """Sort `worker 10` after `worker 2`."""
    return tuple((word, int(digits or -1)) for word, digits in _WORDS.findall(part))


def _order(target: Target, name: str, roles: list[str]) -> tuple[Any, ...]:
    """Sort the driver before trainers, these before rollouts, and agents last."""
    role = target.role
    known = roles.index(role) if role in roles else len(roles)
    return _KINDS.get(role, 1), known, *_rank(target), name


def _rank(target: Target) -> tuple[Any, ...]:
    numbers = target.replica, target.worker
    return target.role, *(-1 if number is None else number for number in numbers), target.rank
