"""A session that closes waits for the processes of its engines.

They see in its manifest that it has ended, finish their exports and close their own sessions. If
the engine is shut down earlier, they die with it.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

from rlprof.rundir import Here, is_alive, known
from rlprof.types import safe_name
from rlprof_remote.leader import last_event

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Session

_LOOK_S = 0.1
_SILENT_S = 5
"""Log what the session waits for after this many seconds."""


class Wait:
    """Waits for the workers of all engines of one session."""

    def __init__(self) -> None:
        self.replicas: set[tuple[str, int]] = set()
        """The role and number of each replica that was given orders."""

    def __call__(self, session: Session) -> None:
        """Wait until they have closed their sessions, as long as an export may take.

        Log which have not, and once what the session waits for if that takes long.
        """
        within_s = session.config.limits.export_timeout_s
        folder = session.run_dir / "manifest"
        names = [f"{safe_name(role)}-*-replica{number}" for role, number in self.replicas]
        waiting = [file for name in names for file in folder.glob(f"{name}-worker*.jsonl")]
        began = time.monotonic()
        is_logged = False
        while waiting := [file for file in waiting if _goes_on(file)]:
            waited_s = time.monotonic() - began
            left = ", ".join(file.stem for file in waiting)
            if waited_s > within_s:
                session.log(f"did not wait for {left}", logging.WARNING)
                return
            if waited_s > _SILENT_S and not is_logged:
                is_logged = True
                session.log(f"waits up to {within_s:g} s for the exports of {left}")
            time.sleep(_LOOK_S)


def waiting_of(closing: list[Any]) -> Wait:
    """Return the one Wait among what a session calls when it closes; add it if there is none."""
    found = next((one for one in closing if isinstance(one, Wait)), None)
    if found is None:
        found = Wait()
        closing.append(found)
    return found


def _goes_on(file: Path) -> bool:
    try:
        if last_event(file) == "ended":
            return False
        with file.open("rb") as lines:
            first = json.loads(lines.readline())
        return is_alive(known(Here, first["here"])) is not False
    except (OSError, ValueError, KeyError, TypeError):
        return False
