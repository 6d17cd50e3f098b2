"""What is said of an engine, by role and ranks, checked alike before it is launched and later."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlprof.config._structure import closest
from rlprof.errors import ConfigError, shown
from rlprof.session._boundary import write_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof.config import Config


def held_ranks(where: str, ranks: Iterable[int] | str) -> tuple[int, ...]:
    """Return the global *ranks* an engine holds; raise ConfigError, of *where*, for no ranks."""
    try:
        held: tuple[int, ...] = () if isinstance(ranks, str) else tuple(ranks)
    except TypeError:  # no iterable
        held = ()
    if not held or any(type(rank) is not int or rank < 0 for rank in held):
        what = "expected the global ranks it holds, e.g. [0, 1]"
        raise ConfigError([f"{where}: ranks: {what}, got {shown(ranks)}"])
    return held


def say_unknown(config: Config, role: str) -> None:
    """Log that *config* has no such role, and which one may be meant; unless it names none."""
    if not config.roles:
        return
    there = ", ".join(config.roles)
    message = "role %r is not in the config (there: %s): not recorded%s"
    write_log(logging.WARNING, message, role, there, closest(role, list(config.roles)))
