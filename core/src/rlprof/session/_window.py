"""The window that is open in this process: its tools started together and stopped together.

Phases inside it become ranges of the tools. Ranges nest per thread; if a phase ends out of turn
(two asyncio tasks on one thread), its range is closed when its turn comes.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof.session._recorder import Recorder
    from rlprof.session._scope import Scope
    from rlprof.types import Window


_LATE = "it ended on another thread than it began on, which had to come by to stop the tool"


class OpenWindow:
    """A window from its opening until its phase or step ends, even if it was closed before."""

    def __init__(self, window: Window, recorders: Sequence[Recorder]) -> None:
        self.window = window
        self.tools = tuple(map(attrgetter("name"), recorders))
        """The names of the plugins that record it."""
        self.owner: Scope | None = None
        """The phase of the window; None: it is the window of a step."""
        self.is_recording = False
        self.starts: tuple[Callable[[], None], ...] = tuple(map(attrgetter("start"), recorders))
        """The recorders of its tools, in the order of the config."""
        self._recorders = tuple(recorders)
        self._ranges: dict[int, list[Scope]] = {}
        self._ended: set[int] = set()
        self.ends = ""
        """Why it has ended, if its thread has still to come by and stop it."""
        self._thread = threading.current_thread()
        self._began = time.monotonic()

    def begin(self) -> None:
        """Count its time from now on: its tools start."""
        self.is_recording = True
        self._began = time.monotonic()

    def stop(self, reason: str) -> None:
        """Stop the tools in reverse order; once."""
        if not self.is_recording:
            return
        self.is_recording = False
        self._ranges.clear()
        late = _LATE if self.ends else ""
        with ExitStack() as stack:  # last in, first out, and all of them even if one raises
            for recorder in self._recorders:
                stack.callback(recorder.stop, reason, late)

    def overdue(self, window_s: float) -> bool:
        """Whether it has been recording for longer than *window_s*."""
        return self.is_recording and time.monotonic() - self._began > window_s

    @property
    def may_stop_here(self) -> bool:
        """Whether the calling thread may stop all of its tools; also if no thread may any more."""
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            return True
        return not any(recorder.needs_its_thread for recorder in self._recorders)

    def push(self, scope: Scope) -> None:
        """Open a range for a phase that begins."""
        self._ranges.setdefault(scope.thread, []).append(scope)
        payload = {"step": scope.step, "occurrence": scope.occurrence}
        for recorder in self._recorders:
            recorder.range("push", scope.name, payload)

    def pop(self, scope: Scope) -> None:
        """Close the range of a phase that ends, and those that waited for it."""
        self._ended.add(scope.id)
        stack = self._ranges.get(threading.get_ident(), [])
        while stack and stack[-1].id in self._ended:
            self._ended.discard(stack.pop().id)
            for recorder in reversed(self._recorders):
                recorder.range("pop")

    def minibatch(self) -> None:
        """Report the next mini-batch to the tools."""
        for recorder in self._recorders:
            recorder.range("minibatch")
