"""`rlprof capture --cancel`: take back requests that no target has begun."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof.errors import ConfigError, RunError
from rlprof_cli import _words
from rlprof_live import control
from rlprof_run import read

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rlprof_run import Answer, Run

_WITHIN_S = 10.0
"""Each process looks about once a second."""
_TICK_S = 0.2
_SHOWN = 8
"""Most requests that an error names."""


def cancel(recorded: Run, name: str) -> int:
    """Take back the request *name*, or all that no target has begun; return the exit code."""
    path, files = recorded.path, _files(recorded.path)
    if name:
        chosen = [file for file, ids in files.items() if name in ids]
        if not chosen:
            there = ", ".join([ids[0] for ids in files.values()][-_SHOWN:]) or "none"
            raise RunError(f"{path}: has no request {name} (the latest: {there})")
    else:
        begun = {one.id for one in recorded.answers if not _is_open(one, recorded)}
        chosen = [file for file, ids in files.items() if begun.isdisjoint(ids)]
        chosen = [file for file in chosen if not file.with_suffix(control.CANCELLED).exists()]
        if not chosen:
            raise RunError(f"{path}: no request waits for its first step, so none is cancelled")
    for file in chosen:
        control.cancel(path, files[file], control.asker())
    ids = {one for file in chosen for one in files[file]}
    until, run = time.monotonic() + _WITHIN_S, read(path)
    while any(_is_open(one, run) for one in _of(run, ids)) and time.monotonic() < until:
        time.sleep(_TICK_S)
        run = read(path)
    return max([_report(run, file.stem, files[file]) for file in chosen])


def _files(run: Path) -> dict[Path, list[str]]:
    """Map the files of requests to the ids in them, oldest first."""
    found = {}
    for file in sorted((run / control.FOLDER).glob("[!.]*.json")):
        with suppress(ConfigError):  # the run has reported it
            found[file] = [request.id for request in control.read(file)]
    return found


def _is_open(one: Answer, run: Run) -> bool:
    """Whether a target has begun no step for the request, as far as is known."""
    is_begun = any((c.request, c.target) == (one.id, one.target) for c in run.captures)
    return one.state == "waiting" and not one.steps and not is_begun


def _report(run: Run, name: str, ids: Collection[str]) -> int:
    """Print what became of each target of the requests *ids*; return 1 if one goes on."""
    answers = _of(run, ids)
    gone = [one for one in answers if one.error.startswith(control.CANCELLED_BY)]
    print(f"request {name}: {_outcome(len(gone), len(answers))}")
    rest = [one for one in answers if one not in gone]
    silent = [one for one in rest if _is_open(one, run)]
    outcomes = [(str(one.target), _words.answer(one, run)) for one in rest if one not in silent]
    why = f"has not answered within {_WITHIN_S:g} s"
    for line in _words.once([*outcomes, *((str(one.target), why) for one in silent)]):
        print(f"  not cancelled: {line}")
    return 1 if rest else 0


def _of(run: Run, ids: Collection[str]) -> list[Answer]:
    return [one for one in run.answers if one.id in ids]


def _outcome(gone: int, count: int) -> str:
    if not count:
        return "cancelled before any process had read it"
    if gone == count:
        return "cancelled; nothing was recorded for it"
    if not gone:
        return "not cancelled"
    return f"cancelled on {gone} of {count} targets"
