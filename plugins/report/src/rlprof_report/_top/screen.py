"""A live run as lines of text that fit a terminal."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from rlprof.types import DRIVER
from rlprof_cli.table import seconds, size
from rlprof_report._figures.waits import wait_of
from rlprof_report._plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlprof_report._top.live import Live
    from rlprof_report._top.state import LiveStep, Member

_ENGINES = 4
"""Lines for engines: the busiest ones."""
_WINDOWS = 4
_PHASE = 14
"""Characters of a phase's name at the head of a column."""
_OTHERS, _GAP = "others", "no phase"
"""The heads of the columns for phases that do not fit, and for time in none."""
_LEAST = 0.1
"""The least share of a step in no phase that has a column."""
_WAIT = 0.02
"""The least share of a step for a wait to be shown."""


def screen(live: Live, *, width: int, height: int) -> str:
    """Show what the run is doing, then its last steps."""
    lines = [_head(live), *_now(live), *_recording(live), *_counters(live), ""]
    lines += _table(live, width, height - len(lines))
    return "\n".join(plain(line, max(width, 1)) for line in lines[: max(height, 1)])


def _head(live: Live) -> str:
    members = live.members.values()
    ended = sum(member.has_ended for member in members)
    others, what = (ended, "ended") if live.is_running else (len(members) - ended, "died")
    drivers = [member for member in members if member.role == DRIVER] or members
    over = "ended" if any(member.has_ended for member in drivers) else "died"
    count = f"{len(members)} process" + ("" if len(members) == 1 else "es")
    more = f", {others} {what}" if 0 < others < len(members) else ""
    return f"run {live.run_id}: {'running' if live.is_running else over}, {count}{more}"


def _now(live: Live) -> Iterator[str]:
    if not live.is_running:
        return
    running, done = live.running(), live.finished()
    since_ns = running[1].end_ns if running else 0
    if done and not since_ns:
        since_ns = done[-1][1].end_ns
    passed = seconds(max(0.0, (time.time_ns() - since_ns) / 1e9)) if since_ns else ""
    if running is not None:
        over = "".join(f"{n} {seconds(s)}, " for n, s in running[1].phases.items())
        since = f"{'then ' if over else ''}{passed} so far" if passed else "no phase has ended yet"
        yield f"step {running[0]}: {over}{since}"
    elif done:
        yield f"after step {done[-1][0]}: {passed} so far"
    else:
        yield "no step has ended yet"
    going = sum(not has_ended for _, has_ended in live.trajectories.values())
    if live.trajectories:  # a part is written as it ends, so others may be in their first
        known = f"at least {going} in flight, " if going else ""
        yield f"trajectories: {known}{len(live.trajectories) - going} ended"


def _recording(live: Live) -> Iterator[str]:
    now = time.time_ns()
    rows: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for member in live.members.values():
        for (window, tool, engine), since in member.windows.items():
            if not member.has_ended:
                rows[window, tool].append((engine or str(member), since))
    for (window, tool), whose in list(rows.items())[:_WINDOWS] if live.is_running else ():
        more = f" and {len(whose) - 1} more" if len(whose) > 1 else ""
        age = seconds(max(0.0, (now - min(since for _, since in whose)) / 1e9))
        yield f"recording {window} with {tool} for {age}: {whose[0][0]}{more}"


def _counters(live: Live) -> Iterator[str]:
    memory: list[tuple[float, Member]] = []
    busy: list[tuple[float, str]] = []
    engines: list[tuple[float, str]] = []
    for member, engine, values in live.counters():
        if not engine and "rss_bytes" in values:
            memory.append((values["rss_bytes"], member))
        for name, value in values.items():
            if name.startswith("device") and name.endswith("_busy"):
                busy.append((value, f"{name.removesuffix('_busy')} of {member}"))
        if engine:
            engines.append((values.get("requests_running", 0.0), _engine(engine, values)))
    if memory:
        most, member = max(memory, key=lambda pair: pair[0])
        total = size(round(sum(rss for rss, _ in memory)))
        yield f"memory: {total}" + (
            f"; most: {member}, {size(round(most))}" if len(memory) > 1 else ""
        )
    if busy:
        least, where = min(busy)
        mean = sum(share for share, _ in busy) / len(busy)
        yield f"devices: {100 * mean:.0f} % busy; least: {where}, {100 * least:.0f} %"
    engines.sort(reverse=True)
    yield from (words for _, words in engines[:_ENGINES])
    if len(engines) > _ENGINES:
        yield f"and {len(engines) - _ENGINES} more engines with fewer requests"


def _engine(name: str, found: Mapping[str, float]) -> str:
    words = [
        f"{found[key]:.0f} {word}"
        for key, word in (("requests_running", "running"), ("requests_waiting", "waiting"))
        if key in found
    ]
    if "kv_cache_use" in found:
        words.append(f"KV cache {100 * found['kv_cache_use']:.0f} %")
    return f"{name}: {', '.join(words)}"


def _table(live: Live, width: int, room: int) -> list[str]:
    """Lay out as many of the last steps as fit, one column per phase."""
    done = live.finished()[-max(room - 1, 0) :] if room > 1 else []
    if not done:
        return []
    fixed = [
        _column("STEP", (str(number) for number, _ in done)),
        _column("SECONDS", (seconds(step.seconds) for _, step in done)),
    ]
    notes = [_note(live, number, step) for number, step in done]
    free = width - sum(len(column[0]) + 2 for column in fixed) - max(map(len, notes))
    phases = _phases([_parts(step) for _, step in done], free)
    rows = zip(*fixed, *phases, ["NOTE" if any(notes) else "", *notes], strict=True)
    return ["  ".join(row).rstrip() for row in rows]


def _parts(step: LiveStep) -> dict[str, float]:
    """Return the seconds of its phases, and those in none of them if they are many."""
    found, whole = step.phases, step.seconds or 0.0
    gap = whole - sum(found.values())
    return {**found, _GAP: gap} if gap >= _LEAST * whole > 0 else found


def _phases(steps: list[dict[str, float]], free: int) -> list[list[str]]:
    totals: dict[str, float] = {}
    for step in steps:
        for name, took in step.items():
            totals[name] = totals.get(name, 0.0) + took
    columns = {
        name: _column(plain(name, _PHASE), (seconds(step.get(name)) for step in steps))
        for name in totals
    }
    widths = {name: len(column[0]) + 2 for name, column in columns.items()}
    left_out: set[str] = set()
    while widths and sum(widths.values()) + (len(_OTHERS) + 2 if left_out else 0) > free:
        shortest = min(widths, key=lambda one: totals[one])
        del widths[shortest]
        left_out.add(shortest)
    chosen = [columns[name] for name in columns if name in widths]
    if chosen and left_out:
        sums = (sum(step.get(name, 0.0) for name in left_out) for step in steps)
        chosen.append(_column(_OTHERS, map(seconds, sums)))
    return chosen


def _column(head: str, cells: Iterable[str]) -> list[str]:
    column = [head, *cells]
    width = max(map(len, column))
    return [cell.rjust(width) for cell in column]


def _note(live: Live, number: int, step: LiveStep) -> str:
    """Return the rank that the others waited for most; recording changes who that is."""
    if live.recorded.get(number, -1) >= step.since_ns:
        return "recorded"
    began_ns = step.end_ns - (step.seconds or 0) * 1e9
    if any(began_ns <= at <= step.end_ns for at in live.closings):
        return "touched by recording"
    waits = []
    for (_, phase), ranks in (*step.ranks.items(), *step.later.items()):
        if len(ranks) > 1:
            took, ends_ns = zip(*ranks.values(), strict=True)
            wait = wait_of(took, ends_ns)
            if not wait.meets:
                waits.append((wait.seconds, list(ranks)[wait.slowest], phase))
    longest, name, phase = max(waits, default=(0.0, "", ""))
    if not name or longest < _WAIT * (step.seconds or 0):
        return ""
    member = live.members[name]
    return f"{member.role} {member.rank} +{seconds(longest)} in {phase}"
