"""Collects files that members wrote on their nodes: from several nodes at once, within a time.

`_visit` collects the files of one node.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import attrs

from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof.types import safe_name
from rlprof_ray._visit import Outcome, Trip, Visit, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rlprof import Session
    from rlprof.rundir import RunFolder
    from rlprof_run import Place

_AT_ONCE = 4
"""Nodes at once; each takes a few MiB of memory here while its files arrive."""
_TOLD_S = 5.0
_GRACE_S = 10.0
"""The wait for a late node, and for a run folder that does not answer."""


def come_home(session: Session, places: set[Place], *, bring: bool) -> set[Place]:
    """Collect the files of a fleet's members in *places*; return the places that are done."""
    import ray

    if not places:
        return set()
    say = session.log
    later = f"collect them with: rlprof collect {session.run_dir}"
    if not ray.is_initialized():  # starting an agent now would start a new cluster
        say(f"Ray is shut down and files lie on nodes; {later}", logging.WARNING)
        return set()
    outcomes = collect(
        session.run,
        sorted(places, key=attrs.astuple),
        of=session.name,
        within_s=session.config.limits.export_timeout_s,
        say=say,
        bring=bring,
    )
    for outcome in outcomes:
        where = f"{outcome.place.host} in {outcome.place.folder}"
        if outcome.error:
            say(f"left on {where}: {outcome.error}; {later}", logging.WARNING)
        else:
            say(f"collected from {where}: {outcome.files} files")
    return {outcome.place for outcome in outcomes if not outcome.error}


def collect(
    run: RunFolder,
    places: Iterable[Place],
    *,
    of: str,
    within_s: float,
    say: Callable[[str], object],
    bring: bool = True,
) -> list[Outcome]:
    """Collect the files in *places*; without *bring*, only measure their size.

    Return the outcome of each place, and write it into a separate manifest file as lines of the
    process *of*. It takes *within_s* altogether, also if nothing answers any more.
    """
    trip = Trip(run.path, run.run_id, run.attempt, time.monotonic() + within_s, brings=bring)
    tour = _Tour(trip, [Outcome(place, error="was not looked at") for place in places])
    thread = threading.Thread(target=tour.run, args=(of,), name="rlprof-collect", daemon=True)
    thread.start()
    end, told = trip.until + _GRACE_S, time.monotonic()
    try:
        while thread.is_alive() and time.monotonic() < end:
            thread.join(0.2)
            if time.monotonic() - told > _TOLD_S:
                told = time.monotonic()
                size = sum(outcome.bytes for outcome in tour.outcomes) / 1e6
                say(f"collecting files from {len(tour.outcomes)} nodes: {size:,.0f} MB")
    finally:
        trip.until = 0.0  # ends visits that are still running
    return [attrs.evolve(outcome) for outcome in tour.outcomes]


class _Tour:
    """All visits of nodes."""

    def __init__(self, trip: Trip, outcomes: list[Outcome]) -> None:
        self.trip = trip
        self.outcomes = outcomes

    def run(self, of: str) -> None:
        """Visit all; write down the outcomes as lines of the process *of*."""
        path = self.trip.path
        waiting = deque(self.outcomes)
        try:
            with _held(path, self.trip.sign):
                threads = [
                    threading.Thread(target=self._work, args=(waiting,), daemon=True)
                    for _ in range(min(_AT_ONCE, len(waiting)))
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        except OSError as exc:
            for outcome in waiting:
                outcome.error = f"{path}: {said(exc)}"
        name = f"{SALVAGED}collect-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
        journal = Journal(path / "manifest" / name)
        with suppress(OSError):  # a full disk: it is left as the driver's manifest says
            journal.write([as_line(_line(outcome, of)) for outcome in self.outcomes])
        journal.close()

    def _work(self, waiting: deque[Outcome]) -> None:
        with suppress(IndexError):
            while True:
                Visit(self.trip, waiting.popleft()).run()


@contextmanager
def _held(run: Path, sign: str) -> Iterator[None]:
    """Show *sign* in the folder *run*; raise OSError if another process collects into it."""
    folder = os.open(run, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError("another process is collecting it") from None
        except OSError:  # a file system without locks
            pass
        (run / sign).touch()
        try:
            yield
        finally:
            (run / sign).unlink()
    finally:
        os.close(folder)


def _line(outcome: Outcome, of: str) -> dict[str, object]:
    found = attrs.asdict(outcome)
    when = {"mono": time.monotonic_ns(), "of": of, "realtime_ns": time.time_ns()}
    return {"event": "collected", **when, **found.pop("place"), **found}
