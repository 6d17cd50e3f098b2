"""Recording on demand: what a live run is asked, and what its slow steps ask for.

`control` the requests · `_mailbox` checks and hands them on · `_slow` finds slow steps
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.hookspecs import hookimpl
from rlprof_live._mailbox import Mailbox
from rlprof_live._slow import SlowSteps

if TYPE_CHECKING:
    from rlprof.session._session import Session

__all__ = ["Live"]


class Live:
    """Record on demand: what `rlprof capture` asks for, and the step after a slow one."""

    _mailbox: Mailbox | None = None
    _slow: SlowSteps | None = None

    @hookimpl
    def session_opened(self, session: Session) -> None:
        """Begin to look; what was asked before was not meant for this process."""
        if session.config.slow_step is not None:
            self._slow = SlowSteps(session.config.slow_step)
        self._mailbox = Mailbox(session)

    @hookimpl
    def step_ended(self, step: int, seconds: float, windows: int) -> None:
        """Measure a step that nothing recorded."""
        if self._slow is not None and not windows:
            self._slow.ended(step, seconds)

    @hookimpl
    def tick(self, session: Session) -> None:
        """Answer what was asked."""
        if self._mailbox is None:
            return
        if self._slow is not None:
            self._mailbox.take(self._slow.requests(session.config))
        self._mailbox.look()

    @hookimpl
    def session_closing(self) -> None:
        """Answer nothing any more."""
        self._mailbox = None
