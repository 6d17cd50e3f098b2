"""An analysis as text: one screen that answers why a run, or a step of it, is slow."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from rlprof_report._plain import argument, listed, plain, secs
from rlprof_report.values.step import PathPart
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report.values import Analysis, Finding
    from rlprof_report.values.step import Step

WIDTH, HEIGHT = 100, 24
_FINDINGS, _NAME = 3, 28
_PARTS = 5
_OFF = 0.1
"""Phases may overlap by this share of a step without a word, and a path may miss as much of it."""
_UNIT = re.compile(r"(?<=\d) (?=m?s\b)")


def text_of(
    analysis: Analysis,
    *,
    step: int | None = None,
    some: bool = False,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> str:
    """Return the verdict, then the evidence: *height* lines of *width*, except commands to paste.

    *step*: the analysis is about this step. *some*: it is about some steps of a run; name them.
    """
    lines = [*_head(analysis, width, some=some), *wrapped(analysis.verdict, width), ""]
    own = next((one for one in analysis.steps[::-1] if one.step == step), None)
    if own is not None:
        lines += _step(own, width)
    elif analysis.phases:
        lines += _phases(analysis, width)
    room = height - len(lines) - 1
    found = list(_findings(analysis, room, step, width))
    lines += found
    room -= len(found)
    rest = [note for note in analysis.notes if note not in analysis.verdict]
    for number, note in enumerate(rest):
        own_lines = list(_note(note, width))
        if len(own_lines) > room - (number + 1 < len(rest)):
            lines += ["note: more are in the report"] if room > 0 else []
            break
        lines += own_lines
        room -= len(own_lines)
    command = f"rlprof export {argument(analysis.run)} --to report"
    lines.append(plain(f"the whole report as a page: {command}"))
    return "\n".join(line.rstrip() for line in lines)


def _head(analysis: Analysis, width: int, *, some: bool) -> list[str]:
    clean = len(analysis.clean.steps)
    left_out = [f"{len(steps)} {state}" for state, steps in analysis.clean.left_out.items()]
    counted = ", ".join([f"{clean} clean", *left_out])
    steps = f"{len(analysis.steps)} step{'s' if len(analysis.steps) != 1 else ''} ({counted})"
    chosen = f": {listed(ranges_of(one.step for one in analysis.steps), 8)}" if some else ""
    return wrapped(f"run {analysis.run_id}: {analysis.state}, {steps}{chosen}", width)


def _phases(analysis: Analysis, width: int) -> Iterator[str]:
    whole, count = analysis.clean.mean_s or 0.0, len(analysis.clean.steps)
    ordered = sorted(analysis.phases, key=lambda one: -one.mean_s)[:_PARTS]
    longest = max(len("no phase"), *(len(plain(one.name, _NAME)) for one in ordered))
    yield plain(
        f"phases of {analysis.whose}, mean of {count} clean step{'s' * (count != 1)}:", width
    )
    notes = []
    for one in ordered:
        notes.append(f"   in {one.steps} of them" if one.steps < count else "")
        if one.wait_s >= 0.01 * (whole or 1):
            notes[-1] += f"   slowest by {secs(one.wait_s)}: {one.worst or 'varies'}"
        elif one.last:
            notes[-1] += f"   last: {one.last}"
    bars = max(10, min(30, width - longest - 21 - max(map(len, notes))))
    for one, note in zip(ordered, notes, strict=True):
        bar = "#" * round(bars * min(1.0, one.share))
        line = f"  {plain(one.name, _NAME):{longest}} {secs(one.mean_s):>10} {one.share:5.0%}"
        yield plain(f"{line}  {bar:{bars}}{note}", width)
    rest, others = analysis.no_phase_s, [one for one in analysis.phases if one not in ordered]
    if others:
        label = f"{len(others)} other{'s' * (len(others) > 1)}"
        seconds, share = sum(one.mean_s for one in others), sum(one.share for one in others)
        yield f"  {label:{longest}} {secs(seconds):>10} {share:5.0%}"
    yield f"  {'no phase':{longest}} {secs(rest):>10} {rest / (whole or 1):5.0%}"
    if sum(one.mean_s for one in analysis.phases) + rest > (1 + _OFF) * whole:
        yield "  phases overlap, so together they are more than a step"
    yield ""


def _step(step: Step, width: int) -> Iterator[str]:
    path = step.path
    kept = _largest(path, step.seconds)
    if sum(part.seconds for part in kept) < (1 - _OFF) * step.seconds:  # many short turns
        path = tuple(_by_trajectory(path))
        kept = _largest(path, step.seconds)
    longest = max((len(plain(part.what, 50)) for part in kept), default=0)
    yield "critical path (what was waited for, in order):"
    for part in kept:
        yield plain(
            f"  {secs(part.seconds):>10}  {plain(part.what, 50):{longest}}   {part.where}", width
        )
    rest = step.seconds - sum(part.seconds for part in kept)
    if len(path) > len(kept):
        count = len(path) - len(kept)
        yield f"  {secs(max(0.0, rest)):>10}  in {count} shorter part{'s' * (count != 1)}"
    helps = [f"{one.what} {secs(one.seconds)}" for one in step.helps if one.seconds >= 0.005][:4]
    if helps:
        yield from wrapped(
            ", ".join(helps), width, "each would save, if nothing else changed: ", "  "
        )
    yield ""


def _largest(path: Sequence[PathPart], whole_s: float) -> list[PathPart]:
    long = [part for part in path if part.seconds >= 0.01 * whole_s]
    largest = sorted(long, key=lambda part: -part.seconds)[:_PARTS]
    return [part for part in path if part in largest]


def _by_trajectory(path: Sequence[PathPart]) -> Iterator[PathPart]:
    """Join neighbouring parts of one trajectory: `tool_call search x 2, request x 3`."""
    for where, found in groupby(path, key=lambda part: part.where.partition(",")[0]):
        parts = list(found)
        phase = parts[0].what.partition(": ")[0]
        names = [part.what.partition(": ")[2] for part in parts]
        took: Counter[str] = Counter()
        for name, part in zip(names, parts, strict=True):
            took[name] += round(part.seconds * 1e6)
        del took["agent"]
        if where.startswith("trajectory ") and len(parts) > 1:
            what = ", ".join(f"{name} x {names.count(name)}" for name, _ in took.most_common(2))
            yield PathPart(f"{phase}: {what}", parts[0].start_s, parts[-1].end_s, where)
        else:
            yield from parts


def _findings(analysis: Analysis, room: int, step: int | None, width: int) -> Iterator[str]:
    shown = 0
    for number, finding in enumerate(analysis.findings[:_FINDINGS], 1):
        lines = list(_finding(finding, number, analysis, step, width))
        if number > 1 and (step is not None or shown + len(lines) > room - 2):
            lines = _title(finding, number, width)
        if shown + len(lines) > room - 2 and number > 1:
            break
        yield from lines
        shown += len(lines)
    else:
        number = min(len(analysis.findings), _FINDINGS) + 1
    left = len(analysis.findings) - number + 1
    if analysis.findings and left > 0:
        where = "in the report" if step is None else "left out here"
        causes = ", ".join(finding.cause for finding in analysis.findings[number - 1 :])
        yield from wrapped(
            f"{left} smaller finding{'s are' if left > 1 else ' is'} {where}: {causes}", width
        )


def _finding(
    finding: Finding, number: int, analysis: Analysis, step: int | None, width: int
) -> Iterator[str]:
    yield from _title(finding, number, width)
    yield from wrapped(" ".join(finding.evidence), width, "   ", "   ")
    more = ""
    if finding.step is not None and step is None:
        more = f": rlprof why {argument(analysis.run)} --step {finding.step}"
    longest = None if finding.cause == "device" else width  # it names a file
    yield plain(f"   look at: {plain('; '.join(finding.where), longest)}{more}")
    if finding.command:
        when = "next" if analysis.state == "running" else "while the next run is live"
        yield plain(f"   {when}: {finding.command}")


def _title(finding: Finding, number: int, width: int) -> list[str]:
    title = f"{finding.title} At most {secs(finding.bound_s)} to gain."
    return wrapped(title, width, f"{number}. {finding.cause}: ", "   ")


def _note(note: str, width: int) -> Iterator[str]:
    """Wrap a note, but not the command at its end, so that you can paste it."""
    words, colon, command = note.partition(": rlprof ")
    yield from wrapped(words + colon[:1], width, "note: ", "      ")
    if command:
        yield plain(f"      rlprof {command}")


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Wrap *text*, but not between a number and its unit."""
    lines = textwrap.wrap(
        _UNIT.sub("\0", plain(text)),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
