"""Requests to this process: checked like a config, answered, handed to the tracks meant."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from rlprof.config import check_config
from rlprof.errors import ConfigError
from rlprof.schedule import Demand
from rlprof_live import control
from rlprof_live._demands import Asker, Demands, too_late

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlprof.config import ToolUse
    from rlprof.session._session import Session
    from rlprof.session._track import Track

    Asked = tuple[Track, Demand, Sequence[ToolUse]]


class Mailbox:
    """Reads the requests to the run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asker = Asker(session)
        self._seen: set[str] = set()
        self._cancelled: dict[str, str] = {}
        list(control.waiting(session.run_dir, self._seen))  # those of before

    def look(self) -> None:
        """Answer the requests since the last call."""
        for file in control.waiting(self._session.run_dir, self._seen):
            try:
                if file.suffix == control.CANCELLED:
                    self._cancel(*control.cancelled(file))
                else:
                    self.take(control.read(file))
            except ConfigError as exc:
                self._session.log(f"request: {'; '.join(exc.faults)}", logging.WARNING)

    def _cancel(self, ids: Iterable[str], by: str) -> None:
        """Drop requests that no step has begun for; those that were not read yet are refused."""
        why = f"{control.CANCELLED_BY} {by or 'somebody'}"
        for one in ids:
            self._cancelled[one] = why
            for track in self._session.tracks:
                if isinstance(track.demands, Demands):
                    track.demands.cancel(one, why)

    def take(self, requests: Iterable[control.Request]) -> None:
        """Hand requests to the tracks that are meant; all of them begin with the same step."""
        asked = [(request, one) for request in requests for one in self._meant(request)]
        if asked:  # before the answer: its reader may go on to the next step
            self._asker.ask(one for _, one in asked)
        for request, (track, demand, _) in asked:
            self._accept(request, track, demand)

    def _meant(self, request: control.Request) -> Iterator[Asked]:
        """Give the tracks that serve *request*; refuse it for the others."""
        tracks = [track for track in self._session.tracks if _is_meant(request, track)]
        if not tracks:
            return
        if request.id in self._cancelled:
            self._refuse(request, tracks, self._cancelled[request.id])
            return
        config = self._session.config
        try:
            control.check(request, config)
            data = control.as_config(request, config)
            checked, tools = check_config(data, roles=[request.role])
        except ConfigError as exc:
            self._refuse(request, tracks, "; ".join(_as_asked(request, exc.faults)))
            return
        uses, role = tools[request.role], checked.roles[request.role]
        demand = Demand(
            request.id, request.next, checked.mode, role.phases, request.at, request.ranks
        )
        chosen = {track: _uses(request, uses, track) for track in tracks}
        is_served = any(chosen.values())
        for track, own in chosen.items():
            late = too_late(demand, track.last_step)
            if own and late:
                self._refuse(request, [track], late)
            elif own:
                yield track, demand, own
            elif not is_served or _is_beside(request, track):
                self._refuse(request, [track], _why_not(request, uses, track))

    def _accept(self, request: control.Request, track: Track, demand: Demand) -> None:
        for key in track.keys(demand):
            self._session.write("request", request=request.as_data(), **key, error="")
        steps = f"the next {request.next} step(s)"
        self._session.log(f"request {request.id} of {request.by or os.getuid()}: {steps}")

    def _refuse(self, request: control.Request, tracks: Iterable[Track], error: str) -> None:
        """Refuse the request in the name of each target it addressed."""
        demand = Demand(request.id, request.next, ranks=request.ranks)
        for key in [key for track in tracks for key in track.keys(demand)]:
            self._session.write("request", request=request.as_data(), **key, error=error)
        self._session.log(f"request {request.id}: {error}", logging.WARNING)


def _as_asked(request: control.Request, faults: Iterable[str]) -> list[str]:
    """Name the options in *faults* as the request does."""
    return [fault.removeprefix(f"config: roles.{request.role}.options.") for fault in faults]


def _is_meant(request: control.Request, track: Track) -> bool:
    return track.target.role == request.role and any(map(request.includes, track.ranks))


def _is_beside(request: control.Request, track: Track) -> bool:
    """Whether the request names tools for a role that only its engine records."""
    return request.tool is not None and track.kinds == ("engine",)


def _uses(request: control.Request, uses: Sequence[ToolUse], track: Track) -> list[ToolUse]:
    return [] if _is_beside(request, track) else [use for use in uses if use.kind in track.kinds]


def _why_not(request: control.Request, uses: Sequence[ToolUse], track: Track) -> str:
    """Return why nothing would record *track*."""
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
