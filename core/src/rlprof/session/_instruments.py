"""What records one target: its tools, or its engine's plugin, made ready window by window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.session._recorder import Recorder
from rlprof.session._window import OpenWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand
    from rlprof.session._link import Link
    from rlprof.session._means import Means
    from rlprof.types import Target, Window


class Instruments:
    """The recorders of one target, by the plugin's name."""

    def __init__(
        self,
        target: Target,
        means: Means,
        limit: int,
        link: Link | None = None,
    ) -> None:
        self.limit = limit
        """The bytes of artifacts after which no further window is opened."""
        self._target = target
        self._means = means
        self._link = link
        self._recorders: dict[str, Recorder] = {}

    def __len__(self) -> int:
        return len(self._recorders)

    @property
    def spent(self) -> int:
        """The bytes of the artifacts so far."""
        return sum([recorder.bytes for recorder in tuple(self._recorders.values())])

    @property
    def why_full(self) -> str:
        """Why no further window may open; empty while the artifacts are within the limit."""
        if self.spent < self.limit:
            return ""
        return f"its share of limits.bytes, {self.limit:,}, is used up"

    @property
    def need_their_thread(self) -> bool:
        """Whether any of them must be started and stopped on the thread that works."""
        return any(recorder.needs_its_thread for recorder in self._recorders.values())

    @property
    def need_this_loop(self) -> bool:
        """Whether any of them waits for the event loop that runs on the calling thread."""
        return any(recorder.needs_this_loop for recorder in self._recorders.values())

    def has(self, uses: Sequence[ToolUse]) -> bool:
        """Whether all of *uses* are warmed up."""
        found = ((self._recorders.get(use.name), use) for use in uses)
        return all(recorder is not None and recorder.has(use) for recorder, use in found)

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Have a recorder for each of *uses*, warmed up."""
        for use in uses:
            if use.name not in self._recorders:  # before it configures, so that `watch` sees it
                recorder = Recorder(use.name, self._target, self._means, link=self._link)
                self._recorders[use.name] = recorder
            self._recorders[use.name].take(use)

    def prepared(
        self, uses: Sequence[ToolUse], window: Window, demand: Demand | None
    ) -> OpenWindow:
        """Make all of *uses* ready for *window*; whoever gets it starts it."""
        asked = {} if demand is None else {"request": demand.id}
        left, data, place = self.limit - self.spent, attrs.asdict(window), window.folder
        recorders = []
        for use in uses:
            recorder, lighter = self._chosen(use, window, left)
            recorder.prepare(window, data, place, **lighter, **asked)
            recorders.append(recorder)
        return OpenWindow(window, recorders)

    def keys(self, _: Demand | None) -> list[dict[str, Any]]:
        """Return the fields that name this target in a manifest line; none for the process."""
        return [{}] if self._link is None else [{"target": attrs.asdict(self._target)}]

    def watch(self) -> None:
        """Say it, from another thread, if a hook on the working thread does not return."""
        for recorder in tuple(self._recorders.values()):
            recorder.watch()

    def end(self) -> None:
        """Let the plugins' threads end."""
        for recorder in self._recorders.values():
            recorder.end()

    def _chosen(self, use: ToolUse, window: Window, left: int) -> tuple[Recorder, dict[str, str]]:
        """Return what records *use*, and what it does lighter if the last window was too much."""
        recorder = self._recorders[use.name]
        recorder.take(use)
        limits = self._means.limits
        found = recorder.pressure.lighter(use, recorder.lighter, left=left, limits=limits)
        if found is None:
            return recorder, {}
        chosen, why = found
        recorder.take(chosen)
        self._means.boundary.say(f"{window.id}: {use.name} records less: {why}")
        return recorder, {"lighter": why}
