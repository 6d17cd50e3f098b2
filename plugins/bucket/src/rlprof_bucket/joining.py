"""Finds the run folder of a process whose `run_dir` is a URL.

Core looks into a folder on the local disk, as it would into a shared one; before each look, the
helper process brings the `run.json` of runs that other hosts have opened.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import attrs

from rlprof.rundir import join as join_local
from rlprof_bucket._helper import Helper

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from rlprof.rundir import RunFolder
    from rlprof.types import Target


def join(
    url: str, home: Path, target: Target, header: Mapping[str, Any], *, wait_s: float
) -> RunFolder:
    """Find or make the run below *url*; its local part lies below *home*, the user's own folder."""
    url = url.rstrip("/")
    local = home / "bucket" / f"{zlib.crc32(url.encode()):08x}"
    local.mkdir(parents=True, exist_ok=True, mode=0o700)
    helper = Helper(url, local, wait_s)
    try:
        found = join_local(local, target, header, wait_s=wait_s, look=helper.look)
        place = str(found.path.relative_to(local))
        helper.join(place, is_new=found.is_new)
    except BaseException:
        helper.kill()
        raise
    helper.keep_for(found.path)
    return attrs.evolve(found, url=f"{url}/{place}")
