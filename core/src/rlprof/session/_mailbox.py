"""Requests to this process: read by the helper thread, checked like a config, answered once."""

from __future__ import annotations

import logging
import os
from collections import deque
from typing import TYPE_CHECKING

from rlprof import control
from rlprof.config import check_config
from rlprof.errors import ConfigError
from rlprof.schedule import Demand
from rlprof.session._track import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rlprof.config import Config, ToolUse
    from rlprof.session._means import Means
    from rlprof.session._track import Track


class Mailbox:
    """Looks at what the run is asked, and hands it to the tracks that are meant."""

    def __init__(self, run: Path, config: Config, tracks: Callable[[], Sequence[Track]]) -> None:
        self._run = run
        self._config = config
        self._tracks = tracks
        self._seen: set[str] = set()
        self.came: deque[Batch] = deque()
        """What all its tracks know of, until the next step begins."""
        list(control.waiting(run, self._seen))  # those of before were not meant for this process

    def look(self, means: Means) -> None:
        """Answer what has come in since the last look."""
        for file in control.waiting(self._run, self._seen):
            try:
                requests = control.read(file)
            except ConfigError as exc:
                means.boundary.tell("request", "; ".join(exc.faults))
                continue
            self.take(requests, means)

    def take(self, requests: Iterable[control.Request], means: Means) -> None:
        """Hand requests to the tracks that are meant; all of them begin with the same step."""
        batch, given = Batch(), list(requests)
        for request in given:
            tracks = [track for track in self._tracks() if _is_meant(request, track)]
            if tracks:
                self._answer(request, tracks, batch, means)
        if given:
            self.came.append(batch)

    def _answer(
        self, request: control.Request, tracks: Sequence[Track], batch: Batch, means: Means
    ) -> None:
        try:
            control.check(request, self._config)
            data = control.as_config(request, self._config)
            checked, tools = check_config(data, roles=[request.role])
        except ConfigError as exc:
            self._tell(request, tracks, "; ".join(_as_asked(request, exc.faults)), means)
            return
        uses, role = tools[request.role], checked.roles[request.role]
        demand = Demand(
            request.id, request.next, checked.mode, role.phases, request.at, request.ranks
        )
        chosen = {track: _uses(request, uses, track) for track in tracks}
        is_served = any(chosen.values())
        for track, own in chosen.items():
            if own:
                self._ask(request, track, demand, own, batch=batch, means=means)
            elif not is_served or _is_beside(request, track):
                self._tell(request, [track], _why_not(request, uses, track), means)

    def _ask(
        self, request: control.Request, track: Track, demand: Demand, uses: Sequence[ToolUse],
        *, batch: Batch, means: Means,
    ) -> None:  # fmt: skip
        late = track.too_late(request.at)
        if late:
            self._tell(request, [track], late, means)
            return
        for key in track.keys(demand):
            means.scribe.tell("request", request=request.as_data(), **key, error="")
        if not means.scratch.exists():
            means.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        track.ask(demand, uses, batch)
        steps = f"the next {request.next} step(s)"
        means.boundary.say(f"request {request.id} of {request.by or os.getuid()}: {steps}")

    @staticmethod
    def _tell(request: control.Request, tracks: Iterable[Track], error: str, means: Means) -> None:
        """Refuse, by the name of everyone who was meant."""
        demand = Demand(request.id, request.next, ranks=request.ranks)
        for key in [key for track in tracks for key in track.keys(demand)]:
            means.scribe.tell("request", request=request.as_data(), **key, error=error)
        means.boundary.say(f"request {request.id}: {error}", logging.WARNING)


def _as_asked(request: control.Request, faults: Iterable[str]) -> list[str]:
    """Say faults of the config that the request would be in the words of the request."""
    return [fault.removeprefix(f"config: roles.{request.role}.options.") for fault in faults]


def _is_meant(request: control.Request, track: Track) -> bool:
    return track.target.role == request.role and any(map(request.includes, track.ranks))


def _is_beside(request: control.Request, track: Track) -> bool:
    """Whether tools are named for what its engine alone records."""
    return request.tool is not None and track.kinds == ("engine",)


def _uses(request: control.Request, uses: Sequence[ToolUse], track: Track) -> list[ToolUse]:
    return [] if _is_beside(request, track) else [use for use in uses if use.kind in track.kinds]


def _why_not(request: control.Request, uses: Sequence[ToolUse], track: Track) -> str:
    """Say why nothing would record *track*."""
    is_inside = any(getattr(use.plugin, "drives", False) for use in uses if use.kind == "engine")
    if _is_beside(request, track) or (request.tool is not None and is_inside):
        return f"{request.role} is recorded by its engine; leave --tool out"
    if uses and is_inside:
        return f"{request.role} is recorded by its engine, which is not attached to this process"
    if uses:
        return (
            f"{request.role} is recorded by its engine, which is not attached to this process; "
            "for the process itself, name a tool: --tool torch"
        )
    return f"{request.role} has no tool; name one: --tool torch"
