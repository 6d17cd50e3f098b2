"""Collects the files of one node.

A file arrives under a temporary name, and gets its final name when its checksum is that of its
source. Then it is removed from its node. Whatever goes wrong, the files stay there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import one_line
from rlprof_ray._agent import JOURNALS, PIECE, PIECES, Agent, Item, sha256

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof_run import Place

_IN_FLIGHT = 2
"""Reads in flight for a node; each is PIECES x PIECE."""


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


@attrs.define
class Trip:
    """The terms on which all nodes are visited."""

    path: Path
    """The run folder."""
    run_id: str
    attempt: int
    until: float
    """When it ends, on the monotonic clock; 0 ends visits that are still running."""
    brings: bool
    """False: the files are only measured."""
    sign: str = attrs.field(init=False, factory=lambda: f".collect-{secrets.token_hex(8)}")
    """A file that exists in the run folder, and in no other."""


class Visit:
    """Collects the files of one folder; `run` never raises."""

    def __init__(self, trip: Trip, outcome: Outcome) -> None:
        self._trip = trip
        self._outcome = outcome
        self._home = trip.path
        self._agent: Any = None

    def run(self) -> None:
        """Collect all files that can be collected, and complete the outcome."""
        outcome, began, brings = self._outcome, time.monotonic(), self._trip.brings
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
                    left.setdefault(said(exc), item.path)
                else:
                    outcome.files += 1
                    outcome.left_files -= 1
                    outcome.left_bytes -= item.size
            if brings and not left:
                self._ask("tidy")
        except Exception as exc:  # after any error, the other nodes are still collected
            error = said(exc)
        reasons = [f"{path}: {why}" for why, path in left.items()] + [error] * bool(error)
        outcome.error = one_line("; ".join(reasons), longest=1000)
        outcome.seconds = round(time.monotonic() - began, 3)
        with suppress(Exception):  # it has ended by itself
            import ray

            ray.kill(self._agent)

    def _inventory(self) -> tuple[list[Item], str]:
        self._start_agent()
        found: tuple[list[Item], str] = self._ask("inventory", self._trip.sign)
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

        place, trip = self._outcome.place, self._trip
        alive = {one["NodeID"]: one["NodeManagerHostname"] for one in ray.nodes() if one["Alive"]}
        same = [node for node, host in alive.items() if host == place.host]
        if place.node not in alive and not same:
            raise ConnectionError("the node is gone")
        node = place.node if place.node in alive else same[0]
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        actor = ray.remote(num_cpus=0, max_concurrency=3, scheduling_strategy=strategy)(Agent)
        self._agent = actor.remote(place.folder, trip.run_id, trip.attempt)

    def _ask(self, what: str, *args: Any) -> Any:
        return self._get(self._call(what, *args))

    def _call(self, what: str, *args: Any, returns: int = 1) -> Any:
        return getattr(self._agent, what).options(num_returns=returns).remote(*args)

    def _get(self, ref: Any) -> Any:
        """Wait for an answer while there is time; raise exceptions of the agent as OSError."""
        import ray

        try:
            return ray.get(ref, timeout=max(0.0, self._trip.until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            raise RuntimeError("there was no time left") from None
        except ray.exceptions.RayTaskError as exc:
            raise OSError(said(exc.cause)) from None
        except ray.exceptions.RayError as exc:
            raise RuntimeError(f"its agent is gone: {said(exc)}") from None


def said(exc: BaseException) -> str:
    """Say in one line what went wrong."""
    words = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
    return one_line(words or type(exc).__name__, longest=300)
