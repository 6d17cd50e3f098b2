"""The output of `rlprof` alone: what to do next in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlprof.errors import RunError
from rlprof_cli._step import step_words
from rlprof_run import RUNS, find_runs, is_untried, read

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_FIRST = (
    ("RLPROF_CONFIG=always python train.py", "keep the times of all steps and phases"),
    ("rlprof check profile.yaml", "is the config valid, are its plugins installed?"),
    ("rlprof doctor", "what works on this host?"),
)
_LIVE = (
    ("rlprof why", "why are its steps slow?"),
    ("rlprof top", "watch it"),
    ("rlprof capture --next 2", "record its next 2 steps"),
)
_LIVE_WITHOUT_TOOL = (*_LIVE[:2], ("rlprof capture --next 2 --tool torch", _LIVE[2][1]))
_OVER = (
    ("rlprof why", "why were its steps slow?"),
    ("rlprof ls latest", "what was recorded, what was not, and why"),
    ("rlprof export --to report", "one page with everything"),
    ("rlprof export --to timeline", "one timeline for https://ui.perfetto.dev"),
)
_DIED = (("rlprof salvage", "export what its killed processes left"), *_OVER)


def next_steps(installed: Collection[str]) -> str:
    """Name the latest run in `outputs/profile`, and the *installed* commands that suit it."""
    head, steps = _here()
    steps = [one for one in steps if one[0].split()[1] in installed or one in _FIRST]
    width = max(len(command) for command, _ in steps)
    lines = [f"  {command:{width}}  {why}" for command, why in steps]
    return "\n".join([head, "", *lines, "", "All commands: rlprof --help"])


def _here() -> tuple[str, Sequence[tuple[str, str]]]:
    found = find_runs(Path(RUNS))
    if not found:
        return f"There is no run in {RUNS} yet. Start with:", _FIRST
    try:
        run = read(found[-1])
    except RunError as exc:
        return f"The latest run cannot be read: {exc}", _OVER[1:2]
    if run.is_running:
        live = _LIVE if run.config.get("tool") else _LIVE_WITHOUT_TOOL
        return f"The latest run, {run.path}, is live: {step_words(run) or 'no step yet'}.", live
    if not run.processes:
        words = "is empty: it has just begun, or died at once"
        return f"The latest run, {run.path}, {words}.", _OVER[1:2]
    if run.state == "died":
        is_left = any(map(is_untried, run.captures))
        return f"The latest run, {run.path}, died.", _DIED if is_left else _OVER
    return f"The latest run, {run.path}, has ended.", _OVER
