"""`open`: a session for this process, or `Off`; `launch`: the needs of one that starts later."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlprof.config import Given
    from rlprof.session._off import Off
    from rlprof.session._session import Session
    from rlprof.types import Launch, Led


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
    config = _given_or_named(config)
    session = None
    if config is not None:
        from rlprof.session._begin import begin

        session = begin(config, role, rank, world_size, coordinates, led=led)
    if session is None:
        from rlprof.session._off import Off

        return Off()
    return session


def launch(
    config: Given | None = None, *, role: str, rank: int = 0, ranks: Iterable[int] | None = None
) -> Launch:
    """Return what a process of *role* must be started with: environment, command, engine arguments.

    Call it before the process starts, on any host; the plugins of *role* answer. The result is
    empty for a rank that is not chosen. Give all *ranks* of an engine that holds several, as for
    `attach`. *config* is as for `open`; ConfigError has all its faults.
    """
    from rlprof.types import Launch

    config = _given_or_named(config)
    if config is None:
        return Launch()
    from rlprof.config import check_config, merge_launches
    from rlprof.session._engines import held_ranks, warn_unknown

    held = (rank,) if ranks is None else held_ranks("launch", ranks)
    checked, uses = check_config(config, roles=[role], rank=held[0])
    own = checked.roles.get(role)
    if checked.enabled and own is None:
        warn_unknown(checked, role)
    if not checked.enabled or own is None or not any(own.includes(one) for one in held):
        return Launch()
    return merge_launches({use.name: use.launch for use in uses[role]})


def _given_or_named(config: Given | None) -> Given | None:
    """Return *config*, or the file that the environment names."""
    return os.environ.get("RLPROF_CONFIG") or None if config is None else config
