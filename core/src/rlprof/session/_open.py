"""`open`: from a config to the session of this process, or `Off`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.config import Given
    from rlprof.session._off import Off
    from rlprof.session._session import Session
    from rlprof.types import Led


def open(  # noqa: A001 -- rlprof.open, as one says it
    config: Given | None = None,
    *,
    role: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    coordinates: Mapping[str, int] | None = None,
    led: Led | None = None,
) -> Session | Off:
    """Open the session of this process.

    *config* is a mapping, a YAML file, an OmegaConf node, or None, which means the file that the
    environment variable `RLPROF_CONFIG` names; without that variable rlprof is off. With the word
    `always` in place of a file, rlprof writes spans and counters, and no tool records. You may
    leave out *role* if the config names at most one; *rank* and *world_size* default to the
    environment of the launcher; *coordinates* are the place of the rank: `{"tp": 0, "pp": 1}`. With
    *led*, another process opens the windows: see docs/hooks.md.

    Raise ConfigError with all faults of the config, and RlprofError if a session is open already: a
    process has one. Later failures are logged and noted in the manifest, and training continues.
    """
    config = given_or_named(config)
    session = None
    if config is not None:
        from rlprof.session._begin import begin

        session = begin(config, role, rank, world_size, coordinates, led=led)
    if session is None:
        from rlprof.session._off import Off

        return Off()
    return session


def given_or_named(config: Given | None) -> Given | None:
    """Return *config*, or the file that the environment names."""
    return os.environ.get("RLPROF_CONFIG") or None if config is None else config
