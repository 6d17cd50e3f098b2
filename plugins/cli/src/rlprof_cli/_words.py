"""Notes about a run, printed under its tables; a note of many targets is printed once."""

from __future__ import annotations

import re
import shlex
import time
from collections import Counter
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING

from rlprof_cli.table import size
from rlprof_run import is_untried, ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_run import Answer, CaptureResult, Process, Run

_KEPT = "; raw data are kept in "
_FULL = re.compile("No space left on device|Disk quota exceeded")
_BAD = {"failed": "failed", "lost": "was lost", "empty": "left nothing"}


def state(capture: CaptureResult) -> str:
    """Return the state of *capture*, and whether its window was closed before its end."""
    is_early = any(note.startswith("closed early") for note in capture.notes)
    return f"{capture.state}, cut" if is_early and capture.state == "whole" else capture.state


def notes(run: Run, captures: Iterable[CaptureResult]) -> list[str]:
    """List the notes of *captures*; those of a full disk become one, with the command to type."""
    captures = list(captures)
    raw = [(one, note.partition(_KEPT)) for one in captures for note in one.notes if _KEPT in note]
    hosts, causes = {_salvage(run, one)[0] for one, _ in raw}, Counter(why for _, (why, *_) in raw)
    found = []
    for capture in captures:
        who = f"{capture.window.id} {capture.target} {capture.tool}"
        unsupported = [f"not as asked: {key}: {why}" for key, why in capture.unsupported.items()]
        for note in [*capture.notes, *unsupported]:
            why, _, folder = note.partition(_KEPT)
            text = f"{why}{_KEPT}{PurePath(folder).parent}" if causes[why] > 1 else note
            if _FULL.search(why):
                host, command = _salvage(run, capture)
                then = f", then run there: {command}" if host in hosts else ""
                text = f"no space left on a disk that {host} writes to; free some{then}"
            found.append((who, text))
        if is_untried(capture):
            host, command = _salvage(run, capture)
            below = capture.scratch.partition(f"/{capture.process}/")[0]
            found.append(
                (who, f"raw data may be left below {below} on {host}; run there: {command}")
            )
    return once(found)


def _salvage(run: Run, capture: CaptureResult) -> tuple[str, str]:
    """Return the host of *capture*'s raw data, and the command to type there."""
    host = run.by_name[capture.process].here.host
    folder = next((one.folder for one in run.left if one.host == host), run.path)
    return host, f"rlprof salvage {folder}"


def problems(run: Run) -> list[str]:
    """List the problems outside of windows."""
    died = sorted(
        ((_last_sign_s(p), p) for p in run.processes if p.state == "died"), key=itemgetter(0)
    )
    lines = [
        f"{p.target} (pid {p.here.pid} on {p.here.host}) died without closing its session"
        f"{time.strftime(', after %H:%M:%S', time.localtime(sign_s)) if sign_s else ''}"
        for sign_s, p in died
    ]
    targets = {str(process.target) for process in run.processes}
    split = [problem.partition(": ") for problem in run.problems]
    lines += [who + colon + what for who, colon, what in split if who not in targets]
    return lines + once((who, what) for who, _, what in split if who in targets)


def _last_sign_s(process: Process) -> float:
    """Return when *process* last wrote its clock, which it does every ten seconds; 0: never."""
    return process.clocks[-1].realtime_ns / 1e9 if process.clocks else 0.0


def commands(run: Run) -> list[str]:
    """List the commands that open the artifacts, as the tools name them."""
    found = [one.command for capture in run.captures for one in capture.artifacts if one.command]
    here = shlex.quote(str(run.path))
    return [command.replace("{run}", here) for command in dict.fromkeys(found)]


def missing(run: Run) -> list[str]:
    """List the targets of the config that wrote nothing."""
    return [
        f"{target}: wrote nothing{' here' if run.left else ''}"
        if target.replica is None
        else f"{target.role}: no engine was attached"
        for target in run.missing
    ]


def left(run: Run) -> list[str]:
    """List the files on other nodes, and the command that collects them."""
    lines = []
    for one in run.left:
        what = f"on {one.host} in {one.folder}"
        if one.files:
            files = f"{one.files} file{'s' if one.files != 1 else ''}"
            what += f": {files}, {size(one.bytes or 0)}"
        lines.append(f"{what}: {one.reason}")
    if lines:
        lines.append(f"collect it with: rlprof collect {run.path}")
    return lines


def answers(run: Run) -> list[str]:
    """List the outcome of each request."""
    lines = []
    for name, found in groupby(run.answers, key=lambda one: one.id):
        lines += once((f"{name}, {one.target}", answer(one, run) + _why(one)) for one in found)
    return lines


def _why(one: Answer) -> str:
    """Return why rlprof made the request itself; empty if somebody else made it."""
    who, _, why = str(one.asked.get("by", "")).partition(": ")
    return f" ({why})" if who == "rlprof" and why else ""


def answer(one: Answer, run: Run) -> str:
    """Return the outcome of a request to one target: `served steps 27-86`."""
    if one.state == "refused":
        return f"refused: {one.error}"
    wanted, steps = one.asked.get("next", 1), _steps(one, run)
    good = [step for step, how in steps.items() if not how]
    if one.state == "served" and len(good) == wanted:
        return f"served {_numbered(good)}"
    if one.state == "waiting" and not steps:
        return "waits for its next step"
    words = f"served {len(good)} of {wanted}" + (f" ({_numbered(good)})" if good else "")
    if one.state == "waiting":
        words += " so far"
    elif one.error:
        words += f"{', then' if good else ':'} {one.error}"
    bad = sorted((how, step) for step, how in steps.items() if how)
    for how, found in groupby(bad, key=lambda pair: pair[0]):
        words += f"; {_numbered([step for _, step in found])} {how}"
    return words


def is_served(one: Answer, run: Run) -> bool:
    """Whether every step of a request to one target was recorded."""
    good = [step for step, how in _steps(one, run).items() if not how]
    return one.state == "served" and len(good) == one.asked.get("next", 1)


def _steps(one: Answer, run: Run) -> dict[int, str]:
    """Map the steps of a request to the reason why they were not recorded; empty: they were."""
    found: dict[int, str] = dict.fromkeys(one.steps, "was not recorded")
    for skipped in run.skipped:
        if (skipped.request, skipped.target) == (one.id, one.target):
            found[skipped.step] = "was skipped"
    states: dict[int, set[str]] = {}
    for capture in run.captures:
        if (capture.request, capture.target) == (one.id, one.target):
            states.setdefault(capture.window.start_step, set()).add(_BAD.get(capture.state, ""))
    for step, ends in states.items():
        found[step] = max(ends) + (" in part" if max(ends) and "" in ends else "")
    return dict(sorted(found.items()))


def _numbered(steps: Iterable[int]) -> str:
    """Write steps short: `step 3`, `steps 1-4, 7`."""
    words = ", ".join(ranges_of(steps))
    return f"step {words}" if words.isdecimal() else f"steps {words}"


def once(notes_of: Iterable[tuple[str, str]]) -> list[str]:
    """Merge equal notes: name the first target, and how many more have the note."""
    found: dict[str, dict[str, None]] = {}
    for who, what in notes_of:
        found.setdefault(what, {})[who] = None
    return [
        f"{next(iter(who))}{f' and {len(who) - 1} more' if len(who) > 1 else ''}: {what}"
        for what, who in found.items()
    ]
