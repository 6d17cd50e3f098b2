"""The contract of listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.hookspecs import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.types import Target, Window


class Listener:
    """A plugin that hears of the events of a session: to post a link, to ask for a recording.

    The config names it under `listeners`. One instance hears one session, on a separate thread,
    in order, at most about a second late. Core logs its exceptions, and a slow listener delays
    nothing: if it falls 10,000 events behind, it misses events, and the manifest says so. When the
    session closes, core waits 5 s for it to finish.

    *session* is the session itself. Besides the methods for training loops, it has `config`,
    `target`, `tracks` (the recorded process and its attached engines), `log(message)`, and
    `write(event, **fields)`, which adds a line to the manifest. Some work must not wait for a hook:
    `watch_spans(see)` calls a function with all spans as they are written, `add_span(...)` adds a
    span, `add_figures(step, figures)` adds to the result of `session.figures()`. The functions in
    `at_step` run as the next step begins, those in `at_end` when the session begins to close, and
    in a forked child, and those in `closing` after its last write.

    All hooks are optional. Processes that follow the driver of a fleet (`session.leads` is False)
    have only the listener `live`: listeners of the driver hear of their windows.
    """

    @hookspec
    def session_opened(self, session: Any) -> None:
        """Hear that *session* is open; the first hook, for which `rlprof.open` waits up to 1 s."""

    @hookspec
    def step_ended(
        self, session: Any, step: int, seconds: float, windows: int, phases: Sequence[str]
    ) -> None:
        """Hear that *step* took *seconds* and entered *phases*.

        *windows*: the number of targets that recorded in it, which takes time.
        """

    @hookspec
    def engine_attached(self, session: Any, target: Target, plugin: type[Any], handle: Any) -> None:
        """Hear that *handle* is the engine *target* from now on, and *plugin* records it."""

    @hookspec
    def window_opened(
        self, session: Any, window: Window, target: Target, tools: Sequence[str]
    ) -> None:
        """Hear that *tools* record *window* of *target*."""

    @hookspec
    def window_closed(
        self, session: Any, window: Window, target: Target, tools: Sequence[str], reason: str
    ) -> None:
        """Hear that the window has closed; `"end"` is the usual *reason*. Exports come later."""

    @hookspec
    def tick(self, session: Any) -> None:
        """Do periodic work; called about once a second, but not while an earlier hook runs."""

    @hookspec
    def session_closing(self, session: Any) -> None:
        """Hear that *session* begins to close; open windows close after this."""
