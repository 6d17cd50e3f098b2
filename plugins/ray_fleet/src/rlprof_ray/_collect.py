"""Collects files that members wrote on their nodes: from several nodes at once, within a time.

A file arrives under a temporary name, and gets its final name when all of it is on disk. Then it is
removed from its node. If anything goes wrong, the files stay there.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from rlprof.errors import one_line
from rlprof.rundir import SALVAGED
from rlprof.types import safe_name
from rlprof_ray._unrecorded import append, as_event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof import Session
    from rlprof.rundir import RunFolder
    from rlprof_run import Place

PIECE = 96 << 10
"""Ray sends up to 100 kB inside its answer. Larger data goes through the object store, which the
trainer needs, and whose pages then count as the driver's."""
PIECES = 20
"""One call returns this many, each as an answer: twice as fast as one call for each."""
_PARTS = ("step_*", "counters", "spans", "manifest")
"""The folders of a run; the manifests last: they name the other files."""
_AT_ONCE = 4
"""Nodes at once; each takes a few MiB of memory here while its files arrive."""
_GRACE_S = 10.0
"""The wait for a late node, and for a run folder that does not answer."""


class Item(NamedTuple):
    """One file on a node, by its path in the run folder."""

    path: str
    size: int
    mtime_ns: int


class Agent:
    """The actor on a node while its files are collected: it lists, reads and removes."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        os.nice(10)  # a job that trains there now runs first

    def inventory(self, run_id: str, attempt: int, driver: str) -> tuple[list[Item], str]:
        """List the files of a run, and say why they must stay; raise OSError if none may come."""
        import rlprof
        from rlprof_run.salvage import candidates

        run = rlprof.read(self._folder)
        if (run.run_id, run.attempt) != (run_id, attempt):
            raise OSError(f"{self._folder}: belongs to another run, {run.run_id}")
        if driver in run.by_name:  # its own run folder, which this node has, too
            return [], ""
        for process in run.processes:
            if process.state == "running":
                raise OSError(f"{process.target} (pid {process.here.pid}) still writes")
        items = []
        for file in (file for part in _PARTS for file in sorted(self._folder.glob(f"{part}/**/*"))):
            if file.is_file() and not file.is_symlink():
                found, path = file.stat(), str(file.relative_to(self._folder))
                items.append(Item(path, found.st_size, found.st_mtime_ns))
        waits = sum(Path(one.scratch).is_dir() for one in candidates(run))
        unsaved = f"captures that were not exported: {waits}; there: rlprof salvage {self._folder}"
        return items, f"{unsaved}, then collect again" if waits else ""

    def read(self, path: str, offset: int) -> list[bytes]:
        """Return the next pieces of a file; those after its end are empty."""
        with (self._folder / path).open("rb") as stream:
            stream.seek(offset)
            return [stream.read(PIECE) for _ in range(PIECES)]

    def remove(self, item: Item) -> None:
        """Remove a collected file; raise OSError if it differs from the copy."""
        file = self._folder / item.path
        if (file.stat().st_size, file.stat().st_mtime_ns) != (item.size, item.mtime_ns):
            raise OSError("another process has written to it since")
        file.unlink()

    def tidy(self) -> None:
        """Remove folders that are empty now, and the run folder if only `run.json` is left."""
        for inner, _, _ in os.walk(self._folder, topdown=False):
            with suppress(OSError):  # it is not empty
                Path(inner).rmdir()
        if os.listdir(self._folder) == ["run.json"]:  # noqa: PTH208 -- names are enough
            (self._folder / "run.json").unlink()
            self._folder.rmdir()
            with suppress(OSError):  # the folder of this node, or of all attempts
                self._folder.parent.rmdir()


@attrs.define
class Outcome:
    """The outcome of one folder of a node."""

    place: Place
    files: int = 0
    bytes: int = 0
    left_files: int | None = None
    """None: it could not be read."""
    left_bytes: int | None = None
    error: str = "was not done in time"
    """Why files are left; empty: all were collected."""

    def __str__(self) -> str:
        words = f"{self.place.host} {self.place.folder}: {self.files} files, {self.bytes:,} B"
        return one_line(f"{words}; left: {self.error}" if self.error else words, longest=1500)


def come_home(session: Session, places: set[Place]) -> None:
    """Collect the files of a fleet's members in *places*; log what is left."""
    within_s = session.config.limits.export_timeout_s
    for outcome in collect(session.run, places, of=session.name, within_s=within_s):
        later = f"; collect them with: rlprof collect {session.run_dir}" if outcome.error else ""
        session.log(f"{outcome}{later}", logging.WARNING if outcome.error else logging.INFO)


def collect(run: RunFolder, places: Iterable[Place], *, of: str, within_s: float) -> list[Outcome]:
    """Collect the files in *places*.

    Return the outcome of each place, and write it into a separate manifest file as lines of the
    process *of*. It takes *within_s* altogether, also if nothing answers any more.
    """
    until = time.monotonic() + within_s
    outcomes = [Outcome(place) for place in sorted(places, key=attrs.astuple)]
    name = f"{SALVAGED}collect-{safe_name(socket.gethostname())}-{os.getpid()}.jsonl"
    slots = threading.Semaphore(_AT_ONCE)

    def visit(outcome: Outcome) -> None:
        with slots:
            _Visit(run, of, outcome, until).run()
            if outcome.left_files is None:  # Ray may name a node just gone, whose host has another
                _Visit(run, of, outcome, until).run()
        found = attrs.asdict(outcome) | {"of": of, "realtime_ns": time.time_ns()}
        append(run.path / "manifest" / name, as_event("collected", **found.pop("place"), **found))

    threads = [threading.Thread(target=visit, args=(one,), daemon=True) for one in outcomes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + _GRACE_S - time.monotonic()))
    return [attrs.evolve(outcome) for outcome in outcomes]


@attrs.define
class _Visit:
    """Collects the files of one folder into a run folder; `run` never raises."""

    _folder: RunFolder
    _driver: str  # the process that has made that folder
    _outcome: Outcome
    _until: float
    """When it ends, on the monotonic clock."""
    _agent: Any = None

    def run(self) -> None:
        """Collect all files that can be collected, and complete the outcome."""
        import ray

        outcome, run = self._outcome, self._folder
        try:
            self._start_agent()
            items, stays = self._ask("inventory", run.run_id, run.attempt, self._driver)
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
        finally:
            if self._agent is not None:
                ray.kill(self._agent)

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
                while data := b"".join(self._ask("read", item.path, out.tell(), returns=PIECES)):
                    out.write(data)
                    self._outcome.bytes += len(data)
                if out.tell() != item.size:
                    raise OSError("its size has changed since")
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
        self._agent = actor.remote(place.folder)

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
