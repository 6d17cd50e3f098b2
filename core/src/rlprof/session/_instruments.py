"""The recorders of one target, its tools or the plugin of its engine, and their open window.

Phases inside a window become ranges of the tools. Ranges nest per thread; if a phase ends out of
turn (two asyncio tasks on one thread), its range is closed when its turn comes.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand
    from rlprof.session._context import Context
    from rlprof.session._loops import Link
    from rlprof.session._recorder import Recorder
    from rlprof.session._scope import Scope
    from rlprof.types import Target, Window

_LATE = "it ended on another thread than it began on; only the thread it began on can stop the tool"


class Instruments:
    """The recorders of one target, by the plugin's name."""

    needs_tools = True
    """False: windows open without a tool, for members that must know the step."""

    def __init__(
        self, target: Target, context: Context, limit: int, link: Link | None = None
    ) -> None:
        self._limit = limit
        """The bytes of artifacts after which no further window is opened."""
        self._target = target
        self._context = context
        self.link = link
        self._recorders: dict[str, Recorder] = {}

    def __len__(self) -> int:
        return len(self._recorders)

    @property
    def spent(self) -> int:
        """The bytes of the artifacts so far."""
        return sum(map(attrgetter("spent"), tuple(self._recorders.values())))

    @property
    def why_full(self) -> str:
        """Why no further window may open; empty while the artifacts are within the limit."""
        if self.spent < self._limit:
            return ""
        return f"its share of limits.bytes, {self._limit:,}, is used up"

    @property
    def need_their_thread(self) -> bool:
        """Whether any of them must be started and stopped on the working thread."""
        return any(recorder.needs_its_thread for recorder in self._recorders.values())

    @property
    def need_this_loop(self) -> bool:
        """Whether any of them waits for the event loop that runs on the calling thread."""
        return any(recorder.needs_this_loop for recorder in self._recorders.values())

    def warm_up(self, uses: Sequence[ToolUse]) -> None:
        """Make *uses* ready."""
        self.take(uses)

    def why_not_ready(self) -> str:
        """Say why they cannot start yet."""
        return ""

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Make a configured recorder for each of *uses*."""
        from rlprof.session._recorder import Recorder  # most ranks record nothing

        for use in uses:
            name = use.name
            if name not in self._recorders:  # before it configures, so that `watch` sees it
                self._recorders[name] = Recorder(name, self._target, self._context, self.link)
            self._recorders[name].take(use)

    def prepared(
        self, uses: Sequence[ToolUse], window: Window, demand: Demand | None
    ) -> OpenWindow:
        """Make all of *uses* ready for *window*, lighter if the last was too much."""
        asked = {} if demand is None else {"request": demand.id}
        left, data, place = self._limit - self.spent, attrs.asdict(window), window.folder
        chosen = []
        for use in uses:
            recorder = self._recorders[use.name]
            if recorder.now.use is not use:
                recorder.take(use)
            noted = asked
            why = recorder.lightened(use, left)
            if why:
                self._context.boundary.log(f"{window.id}: {use.name} records less: {why}")
                noted = {"lighter": why, **asked}
            recorder.prepare(window, data, place, **noted)
            chosen.append(recorder)
        return OpenWindow(window, chosen)

    def keys(self, _: Demand | None) -> list[dict[str, Any]]:
        """Return the fields that name this target in a manifest line; none for the process."""
        return [{}]

    def watch(self) -> None:
        """Report, from another thread, a hook that does not return to the working thread."""
        for recorder in tuple(self._recorders.values()):
            recorder.watch()

    def end(self) -> None:
        """Let the plugins' threads end."""
        for recorder in self._recorders.values():
            recorder.end()


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
        """Why it has ended, if its own thread must still stop it; else empty."""
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
