"""Engines: the ranks they hold, their recorders, and the track of an attached engine."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config import check_config
from rlprof.errors import ConfigError, closest, shown
from rlprof.schedule import Schedule
from rlprof.session._boundary import Guard, write_log
from rlprof.session._instruments import Instruments
from rlprof.session._loops import Link, is_on_a_loop, loop_here
from rlprof.session._track import Track
from rlprof.types import Target, Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlprof.config import Config, ToolUse
    from rlprof.schedule import Demand
    from rlprof.session._context import Context

_LOOP_S = 0.5
"""How long a loop may block for an engine that is nearly ready and may need the loop."""

_SHARED = ("run_dir", "scratch_dir", "steps", "limits", "spans", "counters")
"""The keys of the config that the processes of an engine share."""


class _OnALoop(Instruments):
    """The recorders of an engine, which may need the event loop of the thread that asks."""

    _warming: threading.Thread | None = None
    """The thread that prepares them off that loop."""

    def warm_up(self, uses: Sequence[ToolUse]) -> None:
        """Make *uses* ready; on another thread if a loop runs on this one."""
        found = [(self._recorders.get(use.name), use) for use in uses]
        is_ready = all(recorder is not None and recorder.known(use) for recorder, use in found)
        if is_ready or not is_on_a_loop():
            self.take(uses)
            return
        before = self._warming

        def warm_up() -> None:
            if before is not None:
                before.join()
            with Guard(self._context.boundary, "attach"):
                self.take(uses)

        self._warming = threading.Thread(target=warm_up, name="rlprof-attach", daemon=True)
        self._warming.start()

    def why_not_ready(self) -> str:
        """Wait for recorders in preparation, on a loop only briefly; report unready ones."""
        if self._warming is not None:
            configure_s = self._context.limits.configure_timeout_s
            self._warming.join(_LOOP_S if is_on_a_loop() else configure_s)
            if self._warming.is_alive():
                return "its engine was not ready; enter phases by `async with`"
            self._warming = None
        return ""

    def keys(self, _: Demand | None) -> list[dict[str, Any]]:
        """Return the field that names the engine in a manifest line."""
        return [{"target": attrs.asdict(self._target)}]


def held_ranks(where: str, ranks: Iterable[int]) -> tuple[int, ...]:
    """Return the global *ranks* an engine holds; raise ConfigError, of *where*, for no ranks."""
    try:
        held = tuple(ranks)
    except TypeError:  # no iterable
        held = ()
    if not held or any(type(rank) is not int or rank < 0 for rank in held):
        what = "expected the global ranks it holds, e.g. [0, 1]"
        raise ConfigError([f"{where}: ranks: {what}, got {shown(ranks)}"])
    return held


def warn_unknown(config: Config, role: str) -> None:
    """Log that *config* has no such role, and suggest one; unless it names none."""
    if not config.roles:
        return
    there = ", ".join(config.roles)
    message = "role %r is not in the config (there: %s): not recorded%s"
    write_log(logging.WARNING, message, role, there, closest(role, list(config.roles)))


def engine_track(
    config: Config,
    context: Context,
    handle: Any,
    *,
    role: str,
    replica: int,
    ranks: Iterable[int] | None,
    world_size: int | None,
    loop: Any,
    coordinates: Mapping[str, int] | None,
) -> tuple[Track, list[ToolUse]] | None:
    """Check the config of *role* and raise its faults; None: this replica is not recorded."""
    own = config.roles.get(role)
    if own is None:
        warn_unknown(config, role)
        return None
    if own.engine is None:
        raise ConfigError([f"roles.{role}.engine: is not named, so nothing can reach it; name one"])
    _, chosen_tools = check_config(config, roles=[role])
    uses = [use for use in chosen_tools[role] if use.kind == "engine"]
    held = held_ranks("attach", [replica] if ranks is None else ranks)
    given = () if ranks is None else held
    if world_size is not None and max(held) >= world_size:
        what = f"rank {max(held)} does not exist in a world of {world_size}"
        raise ConfigError([f"attach: {what}; name the ranks it holds, and how many there are"])
    target = context.target
    if (target.role, target.replica) != (role, replica):  # else it is this process' own engine
        world = max(held) + 1 if world_size is None else world_size
        target = Target(role, held[0], world, replica, dict(coordinates or {}))
    chosen = tuple(rank for rank in held if own.includes(rank))
    schedule = config.schedule(role) if chosen else Schedule()
    workers = Workers(
        ranks=given, chosen=chosen if given else (), given=_shared(config, context, target),
        loop=loop_here() if loop is None else loop, closing=context.closing,
    )  # fmt: skip
    link = Link(handle, loop, workers)
    share = config.share(target.world_size) * max(1, len(chosen))
    instruments = _OnALoop(target, context, share, link)
    for use in uses:
        context.listeners.hear("engine_attached", target=target, plugin=use.plugin, handle=handle)
    track = Track(target, schedule, context, instruments, ranks=held)
    return track, uses if schedule.steps else []


def _shared(config: Config, context: Context, target: Target) -> dict[str, Any]:
    """Return the data that every order to the processes of the engine carries."""
    data, world_size = config.as_data(), target.world_size
    data["limits"]["bytes"] = config.share(world_size) * world_size  # one role, all its ranks
    return {
        "run": str(context.run.path),
        "config": {key: data[key] for key in _SHARED},
        "role": target.role,
        "replica": target.replica or 0,
        "world_size": world_size,
        "leader": {"here": attrs.asdict(context.here), "manifest": str(context.scribe.manifest)},
    }
