"""The session of this process, where annotated functions look for it.

A module of its own, because annotated functions travel: pickled by value (Ray does so with what a
script defines) they take their globals along, but refer to modules by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof.session._session import Session

session: Session | None = None
"""None: rlprof is off in this process."""

beside: list[Session] = []
"""Those of an engine's workers that live in this process, while it has a session of its own."""
