"""How many bytes the artifacts of a run take: added up from what its processes have told.

Every process of a run looks at the files of all the others, so it does so the more seldom the
longer it takes; and it reads only those that have grown. Members of a fleet add up their own bytes,
and tell their driver.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rlprof.rundir import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_PAUSE = 100
"""Times as long as a look took is the pause after it: one part in a hundred of one thread."""


class Budget:
    """Adds up for one process; `look` is called by its helper thread alone."""

    def __init__(self, folder: Path, *, own: bool = False) -> None:
        self.spent = 0
        """Bytes of all artifacts, when they were added up last; *own*: of this process alone."""
        self._heard = 0
        self._folder = folder
        self._own = own
        self._is_due = False
        self._next_look = 0.0
        self._seen: dict[str, tuple[int, int]] = {}
        """By manifest: its size, and the bytes that it tells of."""

    def hear(self, more: int) -> None:
        """Take what members have told of, whose files may lie on other nodes."""
        self._heard += more

    @property
    def known(self) -> int:
        """Bytes that are known of in either way: what was told of may have been seen, too."""
        return max(self.spent, self._heard)

    def look(self, artifacts: Iterable[Mapping[str, Any]]) -> None:
        """Take what this process has just written, and look for what others have."""
        sizes = [int(artifact["size"]) for artifact in artifacts]
        if self._own:
            self.spent += sum(sizes)
            return
        self._is_due = self._is_due or bool(sizes)
        began = time.monotonic()
        if not self._is_due or began < self._next_look:
            return
        self._is_due = False
        for file in self._folder.glob("manifest/*.jsonl"):
            size = file.stat().st_size
            if self._seen.get(file.name, (-1, 0))[0] != size:
                self._seen[file.name] = size, _told(file)
        self.spent = sum(told for _, told in self._seen.values())
        now = time.monotonic()
        self._next_look = now + _PAUSE * (now - began)


def _told(file: Path) -> int:
    return sum(
        int(line["artifact"]["size"])
        for line in read_lines(file, [])
        if line.get("event") == "artifact"
    )
