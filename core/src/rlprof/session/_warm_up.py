"""Makes the plugins of one target ready: here, or on another thread for an engine on a loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rlprof.session._boundary import Guard
from rlprof.session._link import is_on_a_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import ToolUse
    from rlprof.session._instruments import Instruments
    from rlprof.session._means import Means

_LOOP_S = 0.5
"""How long a loop may stand still for an engine that is nearly ready and may need the loop."""


class WarmUp:
    """The plugins of one target, as far as they are ready."""

    def __init__(self, instruments: Instruments, means: Means, *, is_engine: bool) -> None:
        self._instruments = instruments
        self._means = means
        self._is_engine = is_engine
        self._thread: threading.Thread | None = None

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Make *uses* ready; on another thread if an engine may need the loop of this one."""
        if not self._is_engine or self._instruments.has(uses) or not is_on_a_loop():
            self._instruments.take(uses)
            return
        before = self._thread

        def warm_up() -> None:
            if before is not None:
                before.join()
            with Guard(self._means.boundary, "attach", lambda _: None):
                self._instruments.take(uses)

        self._thread = threading.Thread(target=warm_up, name="rlprof-attach", daemon=True)
        self._thread.start()

    def is_done(self) -> bool:
        """Wait for what is being made ready, on a loop only briefly; return whether it is."""
        if self._thread is not None:
            limits = self._means.limits
            self._thread.join(_LOOP_S if is_on_a_loop() else limits.configure_timeout_s)
            if self._thread.is_alive():
                return False
            self._thread = None
        return True
