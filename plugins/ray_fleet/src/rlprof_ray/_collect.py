"""Collects files that members wrote on their nodes: from several nodes at once, within a time."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import attrs

from rlprof.errors import one_line
from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof.types import safe_name
from rlprof_ray._landing import Landing
from rlprof_ray._visit import Outcome, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    tour = _Tour(run, list(places), of, bring=bring, until=time.monotonic() + within_s)
    thread = threading.Thread(target=tour.run, name="rlprof-collect", daemon=True)
    thread.start()
    told = time.monotonic()
    try:
        while thread.is_alive() and time.monotonic() < tour.until + _GRACE_S:
            thread.join(0.2)
            if time.monotonic() - told > _TOLD_S:
                told = time.monotonic()
                say(tour.progress)
    finally:
        is_stuck = thread.is_alive()
        tour.until = 0.0  # ends visits that are still running
    late = f"{run.path} does not answer"
    return [
        tour.outcomes.get(place) or Outcome(place, error=late if is_stuck else "was not looked at")
        for place in tour.places
    ]


class _Tour:
    """The state that all visits of nodes share."""

    def __init__(
        self, run: RunFolder, places: list[Place], of: str, *, bring: bool, until: float
    ) -> None:
        self.places = places
        self.until = until
        self.outcomes: dict[Place, Outcome] = {}
        self._run = run
        self._of = of
        self._brings = bring
        self._waiting = deque(places)
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def progress(self) -> str:
        """The progress, in words."""
        done = f"{len(self.outcomes)} of {len(self.places)} nodes"
        return f"collecting files from other nodes: {done}, {self._bytes / 1e6:,.0f} MB"

    def run(self) -> None:
        """Visit all; write down the outcomes."""
        landing = Landing(self._run.path)
        try:
            with landing.held():
                threads = [
                    threading.Thread(target=self._work, args=(landing,), daemon=True)
                    for _ in range(min(_AT_ONCE, len(self.places)))
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        except OSError as exc:
            why = one_line(exc.strerror or exc)
            for place in self._waiting:
                self.outcomes[place] = Outcome(place, error=f"{self._run.path}: {why}")
        self._write()

    def _work(self, landing: Landing) -> None:
        while True:
            try:
                place = self._waiting.popleft()
            except IndexError:
                return
            visit = Visit(
                place, self._run, landing, lambda: self.until, bring=self._brings, came=self._came
            )
            self.outcomes[place] = visit.run()

    def _came(self, count: int) -> None:
        with self._lock:
            self._bytes += count

    def _write(self) -> None:
        name = f"{SALVAGED}collect-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
        journal = Journal(self._run.path / "manifest" / name)
        lines = [as_line(_line(outcome, self._of)) for outcome in self.outcomes.values()]
        try:
            journal.write(lines)
        except OSError:  # a full disk: it is left as the driver's manifest says
            return
        finally:
            journal.close()


def _line(outcome: Outcome, of: str) -> dict[str, object]:
    said = attrs.asdict(outcome)
    when = {"mono": time.monotonic_ns(), "of": of, "realtime_ns": time.time_ns()}
    return {"event": "collected", **when, **said.pop("place"), **said}
