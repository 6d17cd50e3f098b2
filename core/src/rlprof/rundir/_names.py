"""A name with a date for a run whose launcher gave it only a random id, as torchrun does.

All leaders must agree on it, on any host: the first leaves it as a link that leads nowhere,
`<run_dir>/.launches/<id>`. Making one is atomic, and nothing that looks for runs follows it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof.rundir._files import NO_LINKS

if TYPE_CHECKING:
    from pathlib import Path


def agreed_name(run_dir: Path, launch_id: str, *, leads: bool) -> str:
    """Return the name of the run of *launch_id*; a process that *leads* may choose it.

    It is *launch_id* itself if no leader has chosen a name yet, or if the file system has no links.
    """
    link = run_dir / ".launches" / launch_id
    if leads:
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            with suppress(FileExistsError):
                link.symlink_to(f"{time.strftime('%Y%m%d-%H%M%S')}-{launch_id[:4]}")
        except OSError as exc:
            if exc.errno not in NO_LINKS:
                raise
    try:
        return link.readlink().name
    except OSError:
        return launch_id
