"""`launch`: the needs of a process that does not exist yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.config import check_config, merge_launches
from rlprof.session._engines import held_ranks, warn_unknown
from rlprof.session._open import given_or_named
from rlprof.types import Launch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof.config import Given


def launch(
    config: Given | None = None, *, role: str, rank: int = 0, ranks: Iterable[int] | None = None
) -> Launch:
    """Return what a process of *role* must be started with: environment, command, engine arguments.

    Call it before the process starts, on any host; the plugins of *role* answer. The result is
    empty for a rank that is not chosen. Give all *ranks* of an engine that holds several, as for
    `attach`. *config* is as for `open`; ConfigError has all its faults.
    """
    config = given_or_named(config)
    if config is None:
        return Launch()
    held = (rank,) if ranks is None else held_ranks("launch", ranks)
    checked, uses = check_config(config, roles=[role], rank=held[0])
    own = checked.roles.get(role)
    if checked.enabled and own is None:
        warn_unknown(checked, role)
    if not checked.enabled or own is None or not any(own.includes(one) for one in held):
        return Launch()
    return merge_launches({use.name: use.launch for use in uses[role]})
