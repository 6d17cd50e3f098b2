"""Reports the words of a selection that match nothing in a run, and the available ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof.errors import shown
from rlprof_run._ranges import ranges_of
from rlprof_run._selection import SPANS, WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_run._run import Run
    from rlprof_run._selection import Selection

_MOST = 8
"""Most available words that a message names."""


def explain_empty(run: Run, selection: Selection, times: Sequence[tuple[int, int]]) -> str:
    """Write the error; *run* is the whole of it, its captures were at *times*."""
    steps, (first, last), in_time = _of_spans(run, selection)
    windows = dict.fromkeys(one.window for one in run.captures)
    for one in _words(run, selection, has_spans=last > 0):
        if one.there.isdisjoint(one.asked):
            return one.missed(run, one.asked)
    of_steps = attrs.evolve(selection, windows=())
    has_step = any(map(selection.has_step, steps)) or any(map(of_steps.has_window, windows))
    if selection.steps and not has_step:
        words = ", ".join(map(_range, selection.steps))
        steps |= {window.start_step for window in windows}
        return f"{run.path}: has no step {words}; it has {_listed(ranges_of(steps))}"
    first, last = min([first, *(one for one, _ in times)]), max([last, *(one for _, one in times)])
    if last and not in_time and not any(selection.has_time(*time) for time in times):
        begun, ended = ((one - run.opened_ns) / 1e9 for one in (first, last))
        return (
            f"{run.path}: has nothing in the time selected; it goes from {begun:.1f} s to "
            f"{ended:.1f} s"
        )
    return f"{run.path}: nothing in it is all that is selected at once; select less"


def unmatched(run: Run, selection: Selection) -> Iterator[str]:
    """List the names in *selection* that nothing in *run* has; numbers of steps need not exist."""
    for one in _words(run, selection, has_spans=True):
        missing = [word for word in one.asked if word not in one.there]
        if missing:
            yield one.missed(run, missing)


@attrs.frozen
class _Words:
    """The selected words of one kind, and the available ones."""

    kind: str
    asked: Sequence[str]
    there: set[str]
    listed: Sequence[str]

    def missed(self, run: Run, asked: Sequence[str]) -> str:
        words = f"{self.kind} {', '.join(map(shown, asked))}".strip()
        return f"{run.path}: has no {words}; it has {_listed(self.listed)}"


def _words(run: Run, selection: Selection, *, has_spans: bool) -> Iterator[_Words]:
    """Yield the words of *selection*, kind by kind."""
    roles = {one.target.role for one in run.processes} | {one.role for one in run.attached}
    roles |= {one.target.role for one in run.captures}
    windows = dict.fromkeys(one.window for one in run.captures)
    ids = [window.id for window in windows]
    phases = {window.phase for window in windows if window.phase is not None}
    things = sorted({one.tool for one in run.captures})
    things += [SPANS] * has_spans + [WINDOWS] * bool(windows)
    for kind, asked, there, listed in (
        ("role", selection.roles, roles, sorted(roles)),
        ("window", selection.windows, {*ids, *phases}, ids),
        ("", selection.only, set(things), things),
    ):
        if asked:
            yield _Words(kind, asked, there, listed)


def _of_spans(run: Run, selection: Selection) -> tuple[set[int], tuple[int, int], bool]:
    """Return the steps there are, when the spans were, and whether one is in the time selected."""
    steps: set[int] = set()
    first, last, in_time = 2**63, 0, False
    for span in run.spans():
        if span.step is not None:
            steps.add(span.step)
        first, last = min(first, span.start_ns), max(last, span.end_ns)
        in_time = in_time or selection.has_time(span.start_ns, span.end_ns)
    return steps, (first, last), in_time


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST} more" if len(words) > _MOST else ""
    return ", ".join(shown(word)[1:-1] for word in words[:_MOST]) + more or "none"


def _range(steps: range) -> str:
    if steps.step != 1:
        return f"every {steps.step} from {steps.start}"
    return str(steps.start) if len(steps) == 1 else f"{steps.start}-{steps.stop - 1}"
