"""An analysis as text: one screen that answers why a run, or a step of it, is slow."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from rlprof_report._plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_report.values import Analysis, Finding, Step

WIDTH, HEIGHT = 100, 24
_FINDINGS, _NAME = 3, 28
_PARTS = 6


def text_of(analysis: Analysis, *, step: int | None = None) -> str:
    """Return the verdict, then the evidence: 24 lines of 100 columns, but for what is to paste."""
    lines = [_head(analysis), *_wrapped(analysis.verdict), ""]
    own = next((one for one in analysis.steps[::-1] if one.step == step), None)
    if own is not None:
        lines += _step(own)
    elif analysis.phases:
        lines += _phases(analysis)
    room = HEIGHT - len(lines) - 1
    told = list(_findings(analysis, room))
    lines += told
    room -= len(told)
    notes = [line for note in analysis.notes for line in _wrapped(note, "note: ", "      ")]
    if notes and room > 1:
        hidden = len(notes) > room
        lines += notes[: room - 1] if hidden else notes
        lines += ["note: more are in the report"] if hidden else []
    command = f"rlprof export {shlex.quote(analysis.run)} --to report"
    lines.append(plain(f"the whole report as a page: {command}"))
    return "\n".join(line.rstrip() for line in lines)


def _head(analysis: Analysis) -> str:
    clean = len(analysis.clean.steps)
    left_out = [f"{len(steps)} {state}" for state, steps in analysis.clean.left_out.items()]
    counted = ", ".join([f"{clean} clean", *left_out])
    steps = f"{len(analysis.steps)} step{'s' if len(analysis.steps) != 1 else ''} ({counted})"
    return _cut(f"run {analysis.run_id}: {analysis.state}, {steps}")


def _phases(analysis: Analysis) -> Iterator[str]:
    """Show where a clean step goes, the largest phases first."""
    ordered = sorted(analysis.phases, key=lambda one: -one.median_s)[:_PARTS]
    names = [plain(one.name, _NAME) for one in ordered]
    width = max(map(len, names))
    for name, one in zip(names, ordered, strict=True):
        waits = ""
        if one.wait_s >= 0.01 * (analysis.clean.median_s or 1) and one.worst_rank is not None:
            waits = f"   waits {one.wait_s:.2f} s, mostly for rank {one.worst_rank}"
        bar = "#" * round(30 * min(1.0, one.share))
        yield _cut(f"  {name:{width}} {one.median_s:8.2f} s {one.share:5.0%}  {bar:30}{waits}")
    yield ""


def _step(step: Step) -> Iterator[str]:
    """Show what a step waited for, and upper bounds of single changes."""
    largest = sorted(step.path, key=lambda part: -part.seconds)[:_PARTS]
    kept = [part for part in step.path if part in largest]
    yield "critical path (what was waited for, in order):"
    for part in kept:
        where = f"   {part.where}" if part.where else ""
        yield _cut(f"  {part.seconds:8.2f} s  {plain(part.what, 50)}{where}")
    rest = step.seconds - sum(part.seconds for part in kept)
    if len(step.path) > len(kept):
        yield f"  {rest:8.2f} s  in {len(step.path) - len(kept)} shorter parts"
    helps = [f"{one.what} {one.seconds:.2f} s" for one in step.helps if one.seconds >= 0.005][:4]
    if helps:
        yield from _wrapped(", ".join(helps), "would help, each on its own, at most: ", "  ")
    yield ""


def _findings(analysis: Analysis, room: int) -> Iterator[str]:
    """Show the largest findings that fit, and say how many are left out."""
    shown = 0
    for number, finding in enumerate(analysis.findings[:_FINDINGS], 1):
        lines = list(_finding(finding, number, analysis.run))
        if shown + len(lines) > room - 2 and number > 1:
            break
        yield from lines
        shown += len(lines)
    else:
        number = min(len(analysis.findings), _FINDINGS) + 1
    left = len(analysis.findings) - number + 1
    if analysis.findings and left > 0:
        yield f"{left} smaller finding{'s are' if left > 1 else ' is'} in the report"


def _finding(finding: Finding, number: int, run: str) -> Iterator[str]:
    yield from _wrapped(f"{finding.title} At most {finding.bound_s:.2f} s to gain.",
                        f"{number}. {finding.cause}: ", "   ")  # fmt: skip
    yield from _wrapped(" ".join(finding.evidence), "   ", "   ")
    if finding.where:
        yield _cut(f"   look at: {'; '.join(finding.where)}")
    if finding.command:
        command = finding.command.replace("{run}", shlex.quote(run))
        is_line = finding.command.startswith("rlprof ")
        yield plain(
            f"   next: {command}" if is_line else f"   to record it, in the config: {command}"
        )


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        plain(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _cut(line: str) -> str:
    return plain(line, WIDTH)
