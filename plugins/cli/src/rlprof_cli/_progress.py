"""The progress of a request: one line for any number of ranks, then a table."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from rlprof_cli import _words
from rlprof_cli.table import is_quiet, plain, seconds, size, table
from rlprof_run import read

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from rlprof_run import Answer, CaptureResult, Run
    from rlprof_run._run import CaptureState

_TICK_S = 0.5
_DONE: tuple[CaptureState, ...] = ("whole", "partial", "empty", "failed", "lost")
_STATES: tuple[CaptureState, ...] = ("recording", "exporting", *_DONE)


def stands(path: Path, request: str) -> str:
    """Say how to go on with a request that nobody waits for."""
    return f"the request stands; take it back with: rlprof capture {path} --cancel {request}"


def follow(path: Path, ids: Sequence[str], expected: int, timeout_s: float) -> int:
    """Show the progress of the requests *ids* until all are done; return the exit code.

    It waits for the answers of *expected* targets.
    """
    line = _Line()
    deadline = time.monotonic() + timeout_s
    while True:
        recorded = read(path)
        answers = [one for one in recorded.answers if one.id in ids]
        captures = [one for one in recorded.captures if one.request in ids]
        line.show(answers, captures, expected)
        all_answered = len(answers) >= max(1, expected)
        is_over = all_answered and all(one.state != "waiting" for one in answers)
        why = ""
        if not recorded.is_running:
            why = "the run ended before all steps were recorded"
        elif time.monotonic() > deadline:
            why = f"not done after {timeout_s:g} s; {stands(path, ids[0])}"
        is_done = is_over and all(one.state in _DONE for one in captures)
        if is_done or why:
            line.end()
            code = _summary(recorded, ids, answers, captures)
            if is_done:
                return code
            print(f"rlprof: {why}", file=sys.stderr)
            return 1
        time.sleep(_TICK_S)


@attrs.define
class _Line:
    """Shows the progress: on a terminal one line, rewritten; elsewhere a line per new state."""

    _states: object = None

    def show(
        self, answers: Collection[Answer], captures: Collection[CaptureResult], expected: int
    ) -> None:
        counts = Counter(one.state for one in captures)
        expected = max(expected, len(answers))
        words = f"  {len(answers)} of {expected} answered"
        if captures:
            found = [f"{counts[state]} {state}" for state in _STATES if counts[state]]
            words += f"; windows: {', '.join(found)}"
        elif len(answers) == expected:
            words += "; waiting for the next step"
        if is_quiet():
            return
        states = (len(answers) == expected, frozenset(counts))
        if sys.stdout.isatty():
            columns = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{words[: columns - 1]}", end="", flush=True)
        elif states != self._states:
            print(words, flush=True)
        self._states = states

    def end(self) -> None:
        if sys.stdout.isatty() and not is_quiet():
            print()


def _summary(
    recorded: Run,
    ids: Collection[str],
    answers: Collection[Answer],
    captures: Collection[CaptureResult],
) -> int:
    """Print the captures; return 0 if something was recorded and nothing failed."""
    skipped = [one for one in recorded.skipped if one.request in ids]
    outcomes = [(str(one.target), _words.answer(one, recorded)) for one in answers]
    outcomes += [(f"step {one.step}, {one.target}", one.reason) for one in skipped]
    for line in _words.once(outcomes):
        print(f"  {plain(line, 1000)}")
    if captures:
        rows = [
            (
                c.window.id, str(c.target), c.tool, _words.state(c),
                size(sum(a.size for a in c.artifacts)), seconds(c.stop_s),
            )
            for c in captures
        ]  # fmt: skip
        head = ("WINDOW", "TARGET", "TOOL", "STATE", "SIZE", "STOP")
        print(f"\n{table(head, rows, right=('SIZE', 'STOP'))}\n")
    for line in _words.notes(recorded, captures):
        print(f"  {plain(line, 1000)}")
    good = captures and all(c.state in ("whole", "partial") for c in captures)
    if good and answers and all(_words.is_served(a, recorded) for a in answers):
        print(f"open it with: rlprof export {recorded.path} --to timeline")
        return 0
    print(f"see the outcome with: rlprof ls {recorded.path}")
    return 1
