"""Requests to this process: read by the helper thread, checked like a config, answered once."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from rlprof import control
from rlprof.config import check_config
from rlprof.errors import ConfigError
from rlprof.schedule import Demand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rlprof.config import Config
    from rlprof.session._means import Means
    from rlprof.session._track import Track


class Mailbox:
    """Looks at what the run is asked, and hands it to the tracks that are meant."""

    def __init__(self, run: Path, config: Config, tracks: Callable[[], Sequence[Track]]) -> None:
        self._run = run
        self._config = config
        self._tracks = tracks
        self._seen: set[str] = set()
        list(control.waiting(run, self._seen))  # those of before were not meant for this process

    def look(self, means: Means) -> None:
        """Answer what has come in since the last look."""
        for file in control.waiting(self._run, self._seen):
            try:
                request = control.read(file)
            except ConfigError as exc:
                means.boundary.tell("request", "; ".join(exc.faults))
                continue
            self.take(request, means)

    def take(self, request: control.Request, means: Means) -> None:
        """Hand one request to the tracks that are meant."""
        for track in self._tracks():
            if track.target.role == request.role and self._is_meant(request, track):
                self._answer(request, track, means)

    def _is_meant(self, request: control.Request, track: Track) -> bool:
        return any(request.includes(rank) for rank in track.ranks)

    def _answer(self, request: control.Request, track: Track, means: Means) -> None:
        asked = request.as_data()
        everyone = track.keys(Demand(request.id, request.next, ranks=request.ranks))
        try:
            control.check(request, self._config)
            data = control.as_config(request, self._config)
            checked, tools = check_config(data, roles=[request.role])
            uses = [use for use in tools[request.role] if use.kind in track.kinds]
        except ConfigError as exc:
            for key in everyone:
                means.scribe.tell("request", request=asked, **key, error="; ".join(exc.faults))
            means.boundary.tell(f"request {request.id}", "; ".join(exc.faults))
            return
        if not uses:  # the role is recorded through its engines, or by its processes' tools, alone
            return
        late = track.too_late(request.at)
        for key in everyone:
            means.scribe.tell("request", request=asked, **key, error=late)
        if late:
            means.boundary.say(f"request {request.id}: {late}", logging.WARNING)
            return
        role = checked.roles[request.role]
        if not means.scratch.exists():
            means.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        track.ask(
            Demand(request.id, request.next, checked.mode, role.phases, request.at, request.ranks),
            uses,
        )
        steps = f"the next {request.next} step(s)"
        means.boundary.say(f"request {request.id} of {request.by or os.getuid()}: {steps}")
