"""Windows that members had not exported when Ray was shut down before the fleet was closed.

`ray.shutdown()` kills actors at once, so none of them ends properly. Their raw data stays on disk;
the driver salvages the data on its host, as `rlprof salvage` would.
"""

from __future__ import annotations

import logging
import socket
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_ray._tie import CUT

if TYPE_CHECKING:
    from rlprof import Session
    from rlprof_run import Run

_DIE_S = 10.0
"""Actors outlive Ray by less than a second; a detached one closes its session in a few seconds."""


def tell(session: Session) -> None:
    """Note in the manifest what will be missing, and how to get it."""
    what = f"{CUT} before the fleet was closed, so its actors could not export"
    how = f"`rlprof salvage {session.run_dir}` does, on each node"
    session.write("problem", reason=f"{what}; {how}")


def rescue(path: Any, timeout_s: float) -> None:
    """Export the data that dead members left on this host; log failures."""
    from rlprof_run.salvage import salvage

    run = _over(path)
    left = tuple(one for one in run.captures if run.by_name[one.process].state == "died")
    log = logging.getLogger("rlprof")
    for one in salvage(attrs.evolve(run, captures=left), timeout_s=timeout_s):
        capture = one.capture
        name = f"{capture.window.id} {capture.target} {capture.tool}"
        if one.outcome:
            log.warning("%s: %s: not exported: %s", path, name, one.outcome)
        else:
            log.info("%s: %s: salvaged", path, name)


def _over(path: Any) -> Run:
    """Read the run once no other process of this host is live."""
    import rlprof

    until = time.monotonic() + _DIE_S
    while True:
        run = rlprof.read(path)
        own = [one for one in run.processes if one.here.host == socket.gethostname()]
        if time.monotonic() > until or all(one.state != "running" for one in own):
            return run
        time.sleep(0.2)
