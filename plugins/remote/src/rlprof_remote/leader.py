"""The process that decides what others record, and whether it still lives."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof.rundir import Here, is_alive

if TYPE_CHECKING:
    from rlprof import Session

_TAIL = 4096
"""The last line of a manifest is shorter."""


@attrs.frozen
class Leader:
    """The process that opens the windows of others: the driver of a fleet."""

    here: Here
    manifest: str
    """The file it writes to, by which other hosts see that it lives."""

    @classmethod
    def of(cls, session: Session) -> Leader:
        """Describe the process of *session* to its followers."""
        return cls(session.here, str(session.manifest))


class Pulse:
    """Whether a leader still lives, as far as a process on any host can see.

    Its silence is measured by the monotonic clock of this process, because the times of files are
    another machine's.
    """

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._file = Path(leader.manifest)
        self._size = -1
        self._heard = time.monotonic()
        self._has_ended = False

    def heard(self) -> None:
        """Note that the leader has just asked for something."""
        self._heard = time.monotonic()

    def silence_s(self) -> float:
        """Return how long the leader has given no sign of life; infinity once it has ended."""
        alive = is_alive(self._leader.here)
        if alive is False or self._has_ended:
            return float("inf")
        try:
            size = self._file.stat().st_size
            if size != self._size:
                self._size = size
                self.heard()
                self._has_ended = last_event(self._file) == "ended"
        except OSError:  # this host does not share the file: it says nothing
            self.heard()
        if self._has_ended:  # its process may go on, and train
            return float("inf")
        return 0.0 if alive else time.monotonic() - self._heard


def last_event(file: Path) -> str:
    """Return what the last line of the manifest *file* tells of; nothing while it is written."""
    with file.open("rb") as lines:
        lines.seek(0, os.SEEK_END)
        lines.seek(max(0, lines.tell() - _TAIL))
        last = lines.read().splitlines()[-1:]
    try:
        return str(json.loads(last[0])["event"]) if last else ""
    except (ValueError, KeyError, TypeError):
        return ""
