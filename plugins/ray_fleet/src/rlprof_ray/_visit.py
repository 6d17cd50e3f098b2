"""Collects one folder of one node through an agent there: file by file, each checked."""

from __future__ import annotations

import errno
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import one_line
from rlprof_ray import _paths
from rlprof_ray._agent import PIECE, PIECES, Agent, Inventory, Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlprof.rundir import RunFolder
    from rlprof_ray._landing import Landing, Part
    from rlprof_run import Place

_ANSWER_S = 60.0
"""The wait for an answer of an agent; then the visit gives up."""
_IN_FLIGHT = 2
"""Reads in flight; each is PIECES x PIECE, and memory holds no more than these."""
_TRIES = 2
_AGENTS = 3
"""How often an agent is started on one node."""


@attrs.frozen
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


class _GoneError(Exception):
    """The agent or its node does not answer any more."""


class _LateError(Exception):
    """The time for all of it is over."""


class Visit:
    """Collects the files of one folder; `run` never raises."""

    def __init__(
        self,
        place: Place,
        run: RunFolder,
        landing: Landing,
        until: Callable[[], float],
        *,
        bring: bool,
        came: Callable[[int], None],
    ) -> None:
        self._place = place
        self._run = run
        self._landing = landing
        self._until = until
        self._brings = bring
        self._came = came
        self._agent: Any = None
        self._agents = 0
        self._items: tuple[Item, ...] = ()
        self._left: dict[str, str] = {}
        """Path → why it is left."""
        self._home: dict[str, int] = {}
        """Path → its bytes."""

    def run(self) -> Outcome:
        """Collect all files that can be collected; return the outcome."""
        began = time.monotonic()
        error = ""
        looked = False
        try:
            shown = self._inventory()
            looked = True
            error = shown.note
            if self._brings:
                self._bring(shown.items)
            elif shown.items:
                error = "fleet.collect is false"
        except (_GoneError, _LateError) as exc:
            error = str(exc)
        except Exception as exc:  # after any error, the other nodes are still collected
            error = _said(exc)
        finally:
            self._end_agent()
        left = [item for item in self._items if item.path not in self._home]
        reasons = [*_grouped(self._left), *([error] if error else [])]
        return Outcome(
            self._place,
            len(self._home),
            sum(self._home.values()),
            round(time.monotonic() - began, 3),
            len(left) if looked else None,
            sum(item.size for item in left) if looked else None,
            one_line("; ".join(reasons), longest=1000),
        )

    # The files

    def _inventory(self) -> Inventory:
        try:
            self._start_agent()
            return self._looked()
        except _GoneError:
            self._start_agent()
            return self._looked()

    def _looked(self) -> Inventory:
        place = self._place
        if self._ask("sees", f"{place.folder}/{self._landing.sign}"):
            return Inventory(())  # it is the run folder itself: all nodes see it
        shown: Inventory = self._ask("inventory", place.folder)
        if not all(map(_is_sound, shown.items)):
            raise OSError("its agent lists something that is not a file")
        self._items = tuple(sorted(shown.items, key=lambda item: _paths.order(item.path)))
        return attrs.evolve(shown, items=self._items)

    def _bring(self, items: Iterable[Item]) -> None:
        for item in items:
            why = item.why_not or _paths.why_not(item.path) or self._tried(item)
            if why:
                self._left[item.path] = why
            else:
                self._home[item.path] = item.size
        if not self._left:
            with suppress(OSError):  # all were collected
                self._ask("tidy", self._place.folder)

    def _tried(self, item: Item) -> str:
        """Collect one file, in a second try if need be; return why it failed, or nothing."""
        why = ""
        for _ in range(_TRIES):
            try:
                self._one(item)
            except _GoneError as exc:
                why = str(exc)
                self._start_agent()
            except OSError as exc:
                why = _said(exc)
                if exc.errno in (errno.ENOSPC, errno.EDQUOT):
                    self._landing.drop(self._key(item))  # others need the space it took
                    break
            else:
                return ""
        return why

    def _one(self, item: Item) -> None:
        path, folder = item.path, self._place.folder
        digest = self._call("digest", folder, path, item.size)  # it reads ahead of us
        if not self._is_home(item, digest):
            with self._landing.part(self._key(item)) as part:
                self._fetch(item, part)
                if part.sha256 != self._get(digest):
                    part.clear()
                    raise OSError("its checksum changed on the way")
                part.sync(item.mtime_ns)
            self._landing.land(self._key(item), path)
        if not item.stays:
            self._ask("remove", folder, item)

    def _is_home(self, item: Item, digest: Any) -> bool:
        """Whether it was collected before; raise OSError if another file has its name."""
        there = self._landing.size(item.path)
        if there is None:
            return False
        mine = self._landing.digest(item.path)
        if there == item.size and mine == self._get(digest):
            return True
        has_grown = _paths.is_journal(item.path) and there < item.size
        if has_grown and mine == self._ask("digest", self._place.folder, item.path, there):
            return False
        raise OSError("another file has its name in the run folder")

    def _fetch(self, item: Item, part: Part) -> None:
        """Resume after an earlier try, if that left the same bytes."""
        folder, path, size = self._place.folder, item.path, item.size
        if part.size and (
            part.size > size or part.sha256 != self._ask("digest", folder, path, part.size)
        ):
            part.clear()
        free = self._landing.free()
        if size - part.size > free:
            reason = f"{size - part.size:,} bytes are missing and {free:,} are free"
            raise OSError(errno.ENOSPC, reason)
        ahead = part.size
        coming: deque[Any] = deque()
        while part.size < size:
            while ahead < size and len(coming) < _IN_FLIGHT:
                coming.append(self._call("read", folder, path, ahead, returns=PIECES))
                ahead += PIECES * PIECE
            before = part.size
            for piece in self._get(coming.popleft()):
                part.add(piece[: size - part.size])
            if part.size == before:
                raise OSError("it is shorter than it was")
            self._came(part.size - before)

    def _key(self, item: Item) -> str:
        return f"{self._place.node}\0{self._place.folder}\0{item.path}"

    # The agent

    def _start_agent(self) -> None:
        """Start an agent on the node, or on its host if that has another node id by now."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._end_agent()
        if self._agents == _AGENTS:
            raise _GoneError(f"{_AGENTS} agents there have ended")
        self._agents += 1
        node = _node(self._place)
        if node is None:
            raise _GoneError("the node is gone")
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        actor = ray.remote(num_cpus=0, max_concurrency=3, scheduling_strategy=strategy)(Agent)
        self._agent = actor.remote(self._run.run_id, self._run.attempt)

    def _end_agent(self) -> None:
        import ray

        agent, self._agent = self._agent, None
        if agent is not None:
            with suppress(Exception):  # it has ended by itself
                ray.kill(agent)

    def _ask(self, what: str, *args: Any) -> Any:
        return self._get(self._call(what, *args))

    def _call(self, what: str, *args: Any, returns: int = 1) -> Any:
        return getattr(self._agent, what).options(num_returns=returns).remote(*args)

    def _get(self, ref: Any) -> Any:
        """Wait for an answer while there is time; raise exceptions of the agent as OSError."""
        import ray

        left = self._until() - time.monotonic()
        if left <= 0:
            raise _LateError("there was no time left")
        try:
            return ray.get(ref, timeout=min(left, _ANSWER_S))
        except ray.exceptions.GetTimeoutError:
            if left <= _ANSWER_S:
                raise _LateError("there was no time left") from None
            raise _GoneError(f"its agent has not answered for {_ANSWER_S:g} s") from None
        except ray.exceptions.RayTaskError as exc:
            cause = exc.cause
            number = cause.errno if isinstance(cause, OSError) else None
            raise OSError(number, _said(cause)) from None
        except ray.exceptions.RayError as exc:
            raise _GoneError(f"its agent is gone: {_said(exc)}") from None


def _node(place: Place) -> str | None:
    """Return the node of *place*, or, in a restarted cluster, a node on its host."""
    import ray

    alive = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    if place.node in alive:
        return place.node
    return next((node for node, host in alive.items() if host == place.host), None)


def _is_sound(item: Any) -> bool:
    return type(item.path) is str and type(item.size) is int and item.size >= 0


def _grouped(left: dict[str, str]) -> list[str]:
    """Give each reason once, with the first of its files."""
    by_reason: dict[str, list[str]] = {}
    for path, why in left.items():
        by_reason.setdefault(why, []).append(path)
    return [
        f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}: {why}"
        for why, paths in by_reason.items()
    ]


def _said(exc: BaseException) -> str:
    words = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
    return one_line(words or type(exc).__name__, longest=300)
