"""Collects files that members wrote on their nodes: from several nodes at once, within a time.

A file arrives under a temporary name, and gets its final name when all of it is on disk. Then it is
removed from its node. Whatever goes wrong, the files stay there.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import one_line
from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof.types import safe_name
from rlprof_ray._agent import PIECES, Agent, Item

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof import Session
    from rlprof.rundir import RunFolder
    from rlprof_run import Place

_AT_ONCE = 4
"""Nodes at once; each takes a few MiB of memory here while its files arrive."""
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
    error: str = "was not done in time"
    """Why files are left; empty: all were collected."""

    def __str__(self) -> str:
        words = f"{self.place.host} {self.place.folder}: {self.files} files"
        left = f"; left: {self.error}" if self.error else ""
        return one_line(f"{words}, {self.bytes:,} B in {self.seconds:.1f} s{left}", longest=1500)


def come_home(session: Session, places: set[Place]) -> None:
    """Collect the files of a fleet's members in *places*; log what is left."""
    import ray

    later = f"collect them with: rlprof collect {session.run_dir}"
    if places and not ray.is_initialized():  # starting an agent now would start a new cluster
        session.log(f"Ray is shut down and files lie on nodes; {later}", logging.WARNING)
        return
    within_s = session.config.limits.export_timeout_s
    outcomes = collect(session.run, places, of=session.name, within_s=within_s)
    for outcome in outcomes:
        level = logging.WARNING if outcome.error else logging.INFO
        session.log(f"{outcome}; {later}" if outcome.error else str(outcome), level)


def collect(run: RunFolder, places: Iterable[Place], *, of: str, within_s: float) -> list[Outcome]:
    """Collect the files in *places*.

    Return the outcome of each place, and write it into a separate manifest file as lines of the
    process *of*. It takes *within_s* altogether, also if nothing answers any more.
    """
    until = time.monotonic() + within_s
    outcomes = [Outcome(place) for place in sorted(places, key=attrs.astuple)]
    name = f"{SALVAGED}collect-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
    journal = Journal(run.path / "manifest" / name)
    slots, pen = threading.Semaphore(_AT_ONCE), threading.Lock()

    def visit(outcome: Outcome) -> None:
        with slots:
            _Visit(run, outcome, until).run()
        found = attrs.asdict(outcome)
        when = {"mono": time.monotonic_ns(), "of": of, "realtime_ns": time.time_ns()}
        line = {"event": "collected", **when, **found.pop("place"), **found}
        with pen, suppress(OSError):  # a full disk: it is left as the driver's manifest says
            journal.write([as_line(line)])
            journal.close()

    threads = [threading.Thread(target=visit, args=(one,), daemon=True) for one in outcomes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + _GRACE_S - time.monotonic()))
    return [attrs.evolve(outcome) for outcome in outcomes]


class _Visit:
    """Collects the files of one folder into the run folder *run*; `run` never raises."""

    def __init__(self, run: RunFolder, outcome: Outcome, until: float) -> None:
        self._folder = run
        self._outcome = outcome
        self._until = until
        """When it ends, on the monotonic clock."""
        self._agent: Any = None

    def run(self) -> None:
        """Collect all files that can be collected, and complete the outcome."""
        import ray

        outcome, began = self._outcome, time.monotonic()
        try:
            try:
                items, stays = self._inventory()
            except ray.exceptions.RayError:  # it names a node just gone; its host may have another
                items, stays = self._inventory()
            outcome.left_files, outcome.left_bytes = len(items), sum(item.size for item in items)
            reasons = [stays] if stays else []
            for item in items:
                try:
                    self._bring(item)
                    outcome.files += 1
                    if not stays:
                        self._ask("remove", item)
                        outcome.left_files -= 1
                        outcome.left_bytes -= item.size
                except OSError as exc:
                    reasons.append(f"{item.path}: {exc}")
            if not reasons:
                self._ask("tidy")
            outcome.error = one_line("; ".join(reasons), longest=1000)
        except (OSError, RuntimeError, ray.exceptions.RayError) as exc:
            outcome.error = one_line(exc, longest=300)
        outcome.seconds = round(time.monotonic() - began, 3)
        if self._agent is not None:
            ray.kill(self._agent)

    def _inventory(self) -> tuple[list[Item], str]:
        """List the files there; a file here for the time of it says which folder is our own."""
        self._start_agent()
        sign = self._folder.path / f".collect-{os.urandom(8).hex()}"
        sign.touch()
        try:
            found: tuple[list[Item], str] = self._ask("inventory", sign.name)
        finally:
            sign.unlink()
        return found

    def _bring(self, item: Item) -> None:
        """Copy a file, unless it was copied before; raise OSError if another has its name."""
        file = self._folder.path / item.path
        if file.exists():
            here = file.stat()
            if here.st_size != item.size or here.st_mtime_ns // 10**9 != item.mtime_ns // 10**9:
                raise OSError("another file has its name in the run folder")
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as out:
                while out.tell() < item.size:
                    data = b"".join(self._ask("read", item.path, out.tell(), returns=PIECES))
                    if not data:
                        raise OSError("it is shorter than it was")
                    out.write(data)
                    self._outcome.bytes += len(data)
                out.flush()
                os.fsync(out.fileno())  # its source is about to be removed
            # Readers take a process for dead by the time of its manifest.
            os.utime(part, ns=(item.mtime_ns, item.mtime_ns))
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)

    def _start_agent(self) -> None:
        """Start an agent on the node, or on its host if that has another node id by now."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        place = self._outcome.place
        alive = {one["NodeID"]: one["NodeManagerHostname"] for one in ray.nodes() if one["Alive"]}
        same = [node for node, host in alive.items() if host == place.host]
        if place.node not in alive and not same:
            raise ConnectionError("the node is gone")
        node = place.node if place.node in alive else same[0]
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        actor = ray.remote(num_cpus=0, scheduling_strategy=strategy)(Agent)
        self._agent = actor.remote(place.folder, self._folder.run_id, self._folder.attempt)

    def _ask(self, what: str, *args: Any, returns: int = 1) -> Any:
        """Wait for an answer while there is time; raise exceptions of the agent as OSError."""
        import ray

        answer = getattr(self._agent, what).options(num_returns=returns).remote(*args)
        try:
            return ray.get(answer, timeout=max(0.0, self._until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:  # an OSError, which would try the next file
            raise RuntimeError("there was no time left") from None
        except ray.exceptions.RayTaskError as exc:
            raise OSError(str(exc.cause)) from None
