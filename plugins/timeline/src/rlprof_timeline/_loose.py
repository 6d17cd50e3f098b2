"""The timeline of traces of other profilers: their ranks and clocks are guessed.

The rank comes from torch's note of the process group, or from the file name. The clock comes from
the base of Kineto. A trace that was copied out of a run has both in its `rlprof` object. Every
guess is noted in the file and printed.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import closing
from pathlib import Path
from statistics import median_high
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import one_line
from rlprof.types import Target
from rlprof_timeline._clock import FIRST_NS, LAST_NS, Clock, clock_of_others
from rlprof_timeline._source import Plan, Source, Trace, TraceGroup
from rlprof_traces import TraceText, UnreadableError, tail_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

log = logging.getLogger("rlprof.timeline")

_PEEK = 1 << 16
_RANK = re.compile(
    r"(?:^|[^a-z])(?:global_?)?rank[-_=]?(\d+)|(?:^|[^a-z])(tp|dp|pp|ep)[-_]?(\d+)", re.IGNORECASE
)
_TIME = re.compile(rb'"ts"\s*:\s*"?(-?\d+(?:\.\d*)?)')
_SUFFIX = re.compile(r"(?:\.pt|\.trace|\.json|\.gz)+$")
_LAST_US = LAST_NS // 1000
_RANKS = 10**7
"""More are none."""
_EXACT_NS = 1 << 53
"""Perfetto reads times as doubles, which hold the nanoseconds of 104 days."""
_DAY_NS = 86_400_000_000_000
_LOGGED = 20
"""Guesses that are printed one by one."""


@attrs.frozen
class _Guess:
    path: Path
    shown: str
    clock: Clock | None
    first_us: float
    role: str
    ranks: tuple[int, ...]
    """The sort key of the files."""
    whose: str
    how: str
    host: str
    """The name of its host, if known."""
    window: str
    """The window of its run that it recorded, if known."""

    def begin_ns(self) -> int | None:
        """Return the time of its first event, if that has a date; drop an invalid clock."""
        if self.clock is None:
            return None
        at = self.clock.epoch_ns + round(self.first_us * 1000)
        return at if FIRST_NS <= at <= LAST_NS else self.clock.epoch_ns


def of_files(files: Sequence[Path]) -> Plan:
    """Read the beginning of each file."""
    top = Path(os.path.commonpath([file.parent.resolve() for file in files]))
    left_out: dict[str, str] = {}
    guesses = []
    for file in files:
        shown = str((file.parent.resolve() / file.name).relative_to(top))  # it may be a link
        try:
            guesses.append(_guess(file, shown))
        except UnreadableError as exc:
            left_out[shown] = str(exc)
            log.warning("%s: %s; left out of the timeline", one_line(shown, longest=1000), exc)
    guesses.sort(key=lambda one: (str(Path(one.shown).parent), one.role, one.ranks, one.shown))
    dated = [(at, guess) for guess in guesses if (at := guess.begin_ns()) is not None]
    begin_ns = min((at for at, _ in dated), default=0)
    knows = all(guess.host for guess in guesses)
    hosts = {guess.host if knows else guess.shown: guess.host or guess.shown for guess in guesses}
    sources = tuple(_source(guess, begin_ns, knows=knows) for guess in guesses)
    _log(guesses)
    _log_far(dated)
    about = {"folder": top.name, "method": "wall clock of each host, as its files say"}
    return Plan(about, sources, left_out, begin_ns, hosts=hosts, knows_hosts=knows)


def _guess(file: Path, shown: str) -> _Guess:
    text = TraceText(file)
    with closing(text.batches(_PEEK)) as batches:
        first = next(batches, b"")
        found = _TIME.search(first)
        first_us = float(found[1]) if found else 0.0
        if abs(first_us) > _LAST_US:
            found, first_us = None, 0.0
        clock = clock_of_others(text.head, first_us if found else None)
        if clock is None:  # Kineto of 2024 has its base at the end
            tail = tail_of(file)
            if not tail:
                for _ in batches:
                    pass
                tail = text.tail
            clock = clock_of_others(tail, None)
    mine = text.head.get("rlprof")
    mine = mine if isinstance(mine, dict) else {}
    host = mine.get("host")
    host = host if isinstance(host, str) else ""
    target, window = _target(mine.get("target")), str(mine.get("window", ""))
    whose: tuple[str, tuple[int, ...], str, str] = "", *_rank(text.head, shown)
    if target is not None:
        numbers = target.replica or 0, target.rank, target.worker or 0
        whose = target.role, numbers, one_line(target, longest=100), "rlprof"
    return _Guess(file, shown, clock, first_us, *whose, host, window)


def _target(given: object) -> Target | None:
    """Read the owner of a trace of rlprof."""
    if not isinstance(given, dict) or not isinstance(given.get("role"), str):
        return None
    kinds = ("rank", "world_size", "replica", "worker")
    rank, size, replica, worker = (
        n if type(n := given.get(kind)) is int and 0 <= n <= _RANKS else None for kind in kinds
    )
    if rank is None or size is None:
        return None
    return Target(given["role"], rank, size, replica=replica, worker=worker)


def _rank(head: Mapping[str, Any], shown: str) -> tuple[tuple[int, ...], str, str]:
    """Guess the owner of a trace: numbers to sort it by, words, and the source of the guess."""
    given = head.get("distributedInfo")
    rank, size = (
        (given.get("rank"), given.get("world_size")) if isinstance(given, dict) else (None,) * 2
    )
    if type(rank) is int and 0 <= rank < _RANKS:
        of = f"/{size}" if type(size) is int and 0 < size <= _RANKS else ""
        return (rank,), f"rank {rank}{of}", "distributedInfo"
    found = [
        (f"{axis.lower()} {n}" if axis else f"rank {rank}", int(rank or n))
        for rank, axis, n in _RANK.findall(Path(shown).name)
    ]
    words = " ".join(dict.fromkeys(word for word, _ in found))
    return tuple(number for _, number in found), words, "its name" if found else ""


def _source(guess: _Guess, begin_ns: int, *, knows: bool) -> Source:
    clock, problems = guess.clock, []
    if clock is None:
        epoch = begin_ns - round(guess.first_us * 1000)
        clock = Clock(epoch, None, "none: laid at the beginning of the others")
        problems = ["its times have no date: laid at the beginning of the others"]
    name = _SUFFIX.sub("", guess.shown)
    about = {"rank": guess.whose, "rank_by": guess.how} if guess.how else {}
    folder = Path(guess.shown).parent
    together = folder, guess.window
    trace = Trace(
        guess.path, guess.shown, about, tuple(problems), clock=clock, together=together,
        is_of_known_window=bool(guess.window), host=guess.host if knows else guess.shown,
    )  # fmt: skip
    # A file of an unknown owner may hold many processes: they stay as they are.
    title = f"{guess.whose} · {name}" if guess.whose else ""
    group = TraceGroup("" if title else name, (trace,))
    start = guess.begin_ns()
    return Source(title, False, (begin_ns if start is None else start,), (group,))


def _log(guesses: Sequence[_Guess]) -> None:
    for guess in guesses[:_LOGGED]:
        rank = f"{guess.whose} (by {guess.how})" if guess.how else "no rank"
        clock = guess.clock.words if guess.clock else "no date: laid at the beginning of the others"
        log.warning("%s: %s; clock: %s", one_line(guess.shown, longest=300), rank, clock)
    if len(guesses) > _LOGGED:
        log.warning("and %d more; all are in the timeline's own object", len(guesses) - _LOGGED)


def _log_far(dated: Sequence[tuple[int, _Guess]]) -> None:
    """Name the traces that are so far apart in time that a viewer loses digits of all times."""
    middle = median_high([at for at, _ in dated]) if dated else 0
    for at, guess in dated:
        if abs(at - middle) > _EXACT_NS:
            days = f"{abs(at - middle) / _DAY_NS:.0f} days {'before' if at < middle else 'after'}"
            where = f"{one_line(guess.shown, longest=300)}: begins {days} the others"
            why = (
                "so viewers show all traces less exactly; if its clock was wrong, export without it"
            )
            log.warning("%s, %s", where, why)
