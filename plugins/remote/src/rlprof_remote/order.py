"""Orders: how an engine's plugin tells the engine's own processes what to record.

An order is text. The plugin carries it over whatever its engine talks with. The process that reads
it has a session that follows, like any member of a fleet.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof import CaptureError, Window
from rlprof.rundir import Here, known
from rlprof_remote.closing import waiting_of
from rlprof_remote.follower import follow
from rlprof_remote.leader import Leader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Workers
    from rlprof_remote.follower import Follower

_followers: dict[tuple[str, str, int, int], Follower] = {}
"""By run folder, role, replica and worker: the followers in this process."""


def write(workers: Workers, verb: str, **members: Any) -> str:
    """Write an order for *workers*, and have their session wait for them when it closes."""
    given = workers.given
    if not given:
        raise CaptureError(
            f"workers.{verb}: there is no run to give orders for; at launch there are tools "
            'alone, so ask where place == "process"'
        )
    waiting_of(workers.closing).replicas.add((given["role"], given["replica"]))
    role = {"ranks": "all", "tool": list(workers.tools), "options": workers.tools}
    config = {**given["config"], "roles": {given["role"]: role}}
    own = {"config": config, "ranks": workers.ranks, "chosen": workers.chosen}
    return json.dumps({**given, **own, "request": workers.request, "verb": verb, **members})


@attrs.frozen
class Order:
    """What a process inside an engine is asked to do."""

    verb: Literal["prepare", "begin", "end"]
    run: str
    """The run folder."""
    config: Mapping[str, Any]
    role: str
    replica: int
    ranks: tuple[int, ...]
    """The global ranks the engine holds, in the order of its workers; none: nobody has said."""
    chosen: tuple[int, ...]
    """Those of them that are recorded."""
    world_size: int
    leader: Leader
    window: Window | None = None
    """None: to prepare."""
    reason: str = "end"
    request: str = ""
    """The request on demand that asked for the window, if one did."""

    @classmethod
    def read(cls, text: str) -> Order:
        """Read an order; raise ValueError, KeyError or TypeError if *text* is not one."""
        members = json.loads(text)
        leader = Leader(known(Here, members["leader"]["here"]), members["leader"]["manifest"])
        window = None if members["verb"] == "prepare" else known(Window, members["window"])
        ranks, chosen = tuple(members["ranks"]), tuple(members["chosen"])
        changed = {"leader": leader, "window": window, "ranks": ranks, "chosen": chosen}
        return known(cls, {**members, **changed})

    def chooses(self, worker: int) -> bool:
        """Whether the engine's process number *worker* is recorded."""
        return not self.ranks or self.rank(worker) in self.chosen

    def rank(self, worker: int) -> int:
        """Return the global rank of the engine's process number *worker*."""
        return self.ranks[worker] if worker < len(self.ranks) else worker

    def follower(self, worker: int, coordinates: Mapping[str, int]) -> Follower:
        """Return the follower of this process, which is number *worker* of the engine.

        Raise ConfigError if the config cannot work here.
        """
        key = (self.run, self.role, self.replica, worker)
        if key not in _followers:
            rank = self.rank(worker)
            follower = _followers[key] = follow(
                self.config,
                run=self.run,
                role=self.role,
                rank=rank,
                world_size=max(self.world_size, rank + 1),
                coordinates=coordinates,
                replica=self.replica,
                worker=worker,
                leader=self.leader,
            )
            follower.config = self.config
        return _followers[key]

    def begin(self, follower: Follower) -> str:
        """Have *follower* open the window, with the options of its request; return why not."""
        if self.window is None:
            return "the order names no window"
        changed = None if self.config == follower.config else self.config
        why = follower.begin(self.window, config=changed, request=self.request)
        if not why and not follower.session.is_recording:
            return "its tools are not there; the log of this process says why"
        return why
