"""Collects files that members wrote on their nodes: from several nodes at once, within a time.

A file arrives under a temporary name, and gets its final name when its checksum is that of its
source. Then it is removed from its node. Whatever goes wrong, the files stay there.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import socket
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import one_line
from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof.types import safe_name
from rlprof_ray._agent import JOURNALS, PIECE, PIECES, Agent, Item, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rlprof import Session
    from rlprof.rundir import RunFolder
    from rlprof_run import Place

_AT_ONCE = 4
"""Nodes at once; each takes a few MiB of memory here while its files arrive."""
_IN_FLIGHT = 2
"""Reads in flight for a node; each is PIECES x PIECE."""
_TOLD_S = 5.0
_GRACE_S = 10.0
"""The wait for a late node, and for a run folder that does not answer."""


@attrs.define
class Outcome:
    """The outcome of one folder of a node."""

    place: Place
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    left_files: int | None = None
    """None: it could not be read."""
    left_bytes: int | None = None
    error: str = ""
    """Why files are left; empty: all were collected."""


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
    tour = _Tour(run, [Outcome(place, error="was not looked at") for place in places], bring=bring)
    tour.until = time.monotonic() + within_s
    thread = threading.Thread(target=tour.run, args=(of,), name="rlprof-collect", daemon=True)
    thread.start()
    end, told = tour.until + _GRACE_S, time.monotonic()
    try:
        while thread.is_alive() and time.monotonic() < end:
            thread.join(0.2)
            if time.monotonic() - told > _TOLD_S:
                told = time.monotonic()
                size = sum(outcome.bytes for outcome in tour.outcomes) / 1e6
                say(f"collecting files from {len(tour.outcomes)} nodes: {size:,.0f} MB")
    finally:
        tour.until = 0.0  # ends visits that are still running
    return [attrs.evolve(outcome) for outcome in tour.outcomes]


class _Tour:
    """All visits of nodes."""

    def __init__(self, run: RunFolder, outcomes: list[Outcome], *, bring: bool) -> None:
        self.outcomes = outcomes
        self.until = 0.0
        self.brings = bring
        self.run_folder = run
        self.sign = f".collect-{secrets.token_hex(8)}"
        """A file that exists in the run folder, and in no other."""

    def run(self, of: str) -> None:
        """Visit all; write down the outcomes as lines of the process *of*."""
        path = self.run_folder.path
        waiting = deque(self.outcomes)
        try:
            with _held(path, self.sign):
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
                outcome.error = f"{path}: {_said(exc)}"
        name = f"{SALVAGED}collect-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
        journal = Journal(path / "manifest" / name)
        with suppress(OSError):  # a full disk: it is left as the driver's manifest says
            journal.write([as_line(_line(outcome, of)) for outcome in self.outcomes])
        journal.close()

    def _work(self, waiting: deque[Outcome]) -> None:
        with suppress(IndexError):
            while True:
                _Visit(self, waiting.popleft()).run()


class _Visit:
    """Collects the files of one folder; `run` never raises."""

    def __init__(self, tour: _Tour, outcome: Outcome) -> None:
        self._tour = tour
        self._outcome = outcome
        self._home = tour.run_folder.path
        self._agent: Any = None

    def run(self) -> None:
        """Collect all files that can be collected, and complete the outcome."""
        outcome, began, brings = self._outcome, time.monotonic(), self._tour.brings
        outcome.error, error = "was not done in time", ""
        left: dict[str, str] = {}
        try:
            try:
                items, error = self._inventory()
            except RuntimeError:  # Ray names a node that has just gone; its host may have another
                items, error = self._inventory()
            outcome.left_files, outcome.left_bytes = len(items), sum(item.size for item in items)
            if items and not brings:
                error = "fleet.collect is false"
            for item in items if brings else ():
                try:
                    self._bring(item)
                except OSError as exc:
                    left.setdefault(_said(exc), item.path)
                else:
                    outcome.files += 1
                    outcome.left_files -= 1
                    outcome.left_bytes -= item.size
            if brings and not left:
                self._ask("tidy")
        except Exception as exc:  # after any error, the other nodes are still collected
            error = _said(exc)
        reasons = [f"{path}: {why}" for why, path in left.items()] + [error] * bool(error)
        outcome.error = one_line("; ".join(reasons), longest=1000)
        outcome.seconds = round(time.monotonic() - began, 3)
        with suppress(Exception):  # it has ended by itself
            import ray

            ray.kill(self._agent)

    def _inventory(self) -> tuple[list[Item], str]:
        self._start_agent()
        found: tuple[list[Item], str] = self._ask("inventory", self._tour.sign)
        return found

    def _bring(self, item: Item) -> None:
        if item.why_not:
            raise OSError(item.why_not)
        file = self._home / item.path
        if not self._is_home(item, file):
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f".{file.name}.part")
            try:
                self._fetch(item, part)
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
        if not item.stays:
            self._ask("remove", item)

    def _is_home(self, item: Item, file: Path) -> bool:
        """Whether it was collected before; raise OSError if another file has its name."""
        if not file.exists():
            return False
        size = file.stat().st_size
        if size < item.size and item.path.startswith(JOURNALS):  # it has grown since
            return False
        if size == item.size and sha256(file) == self._ask("digest", item.path):
            return True
        raise OSError("another file has its name in the run folder")

    def _fetch(self, item: Item, part: Path) -> None:
        free = shutil.disk_usage(self._home).free
        if item.size > free:
            raise OSError(f"{item.size:,} bytes are missing and {free:,} are free")
        digest = self._call("digest", item.path)  # it reads ahead of us
        found, size, ahead = hashlib.sha256(), 0, 0
        coming: deque[Any] = deque()
        with part.open("wb") as out:
            while size < item.size:
                while ahead < item.size and len(coming) < _IN_FLIGHT:
                    coming.append(self._call("read", item.path, ahead, returns=PIECES))
                    ahead += PIECES * PIECE
                data = b"".join(self._get(coming.popleft()))
                if not data:
                    raise OSError("it is shorter than it was")
                out.write(data)
                found.update(data)
                size += len(data)
                self._outcome.bytes += len(data)
            out.flush()
            os.fsync(out.fileno())  # its source is about to be removed
        if found.hexdigest() != self._get(digest):
            raise OSError("its checksum changed on the way")
        # Readers take a process for dead by the time of its manifest.
        os.utime(part, ns=(item.mtime_ns, item.mtime_ns))

    def _start_agent(self) -> None:
        """Start an agent on the node, or on its host if that has another node id by now."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        place, run = self._outcome.place, self._tour.run_folder
        alive = {one["NodeID"]: one["NodeManagerHostname"] for one in ray.nodes() if one["Alive"]}
        same = [node for node, host in alive.items() if host == place.host]
        if place.node not in alive and not same:
            raise ConnectionError("the node is gone")
        node = place.node if place.node in alive else same[0]
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        actor = ray.remote(num_cpus=0, max_concurrency=3, scheduling_strategy=strategy)(Agent)
        self._agent = actor.remote(place.folder, run.run_id, run.attempt)

    def _ask(self, what: str, *args: Any) -> Any:
        return self._get(self._call(what, *args))

    def _call(self, what: str, *args: Any, returns: int = 1) -> Any:
        return getattr(self._agent, what).options(num_returns=returns).remote(*args)

    def _get(self, ref: Any) -> Any:
        """Wait for an answer while there is time; raise exceptions of the agent as OSError."""
        import ray

        try:
            return ray.get(ref, timeout=max(0.0, self._tour.until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            raise RuntimeError("there was no time left") from None
        except ray.exceptions.RayTaskError as exc:
            raise OSError(_said(exc.cause)) from None
        except ray.exceptions.RayError as exc:
            raise RuntimeError(f"its agent is gone: {_said(exc)}") from None


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
    said = attrs.asdict(outcome)
    when = {"mono": time.monotonic_ns(), "of": of, "realtime_ns": time.time_ns()}
    return {"event": "collected", **when, **said.pop("place"), **said}


def _said(exc: BaseException) -> str:
    words = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
    return one_line(words or type(exc).__name__, longest=300)
