"""The session of this process, for code without a session at hand.

Annotated functions and code deep in an agent loop find it here. Annotated functions are pickled by
value (by Ray, for functions of a script): they take their globals along, but refer to modules by
name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof.session._session import Session

session: Session | None = None
"""None: rlprof is off in this process."""

opened: list[Session] = []
"""The open sessions: this one, and those of an engine's workers in this process."""
