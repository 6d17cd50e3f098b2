"""The contract of listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.hookspecs import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.types import Target, Window


class Listener:
    """A plugin that hears what happens in a session: to post a link, to ask for a recording.

    The config names it under `listeners`. One instance hears one session, on a thread of its own,
    in order, at most about a second late. What it raises is logged, and what it does slowly delays
    nobody: if it falls 10,000 events behind, it misses events, and the manifest says so. When the
    session closes, core waits 5 s for it to finish.

    *session* is the session itself. Beside what a training loop uses it has `config`, `target`,
    `tracks` (what is recorded: the process and its attached engines), `ask(...)`, which has some of
    them record their next steps, `log(message)`, and `write(event, **fields)`, which adds a line to
    the manifest. For what must not wait for a hook: `watch_spans(see)` has a function called with
    all spans as they are written, `add_span(...)` adds one, `add_figures(step, figures)` adds to
    what `session.figures()` returns, and `at_end` are functions for when the session closes, and
    for a forked child.

    All hooks are optional. Processes that follow a fleet's driver (`session.leads` is False) have
    no listener but `live`: the driver's hear of their windows.
    """

    @hookspec
    def session_opened(self, session: Any) -> None:
        """Hear that *session* is open; the first hook, for which `rlprof.open` waits up to 1 s."""

    @hookspec
    def step_ended(
        self, session: Any, step: int, seconds: float, windows: int, phases: Sequence[str]
    ) -> None:
        """Hear that *step* took *seconds* and entered *phases*.

        *windows*: of how many targets something was recorded in it, which takes time.
        """

    @hookspec
    def engine_attached(self, session: Any, target: Target, plugin: type[Any], handle: Any) -> None:
        """Hear that *handle* is the engine *target* from now on, recorded by a *plugin*."""

    @hookspec
    def window_opened(
        self, session: Any, window: Window, target: Target, tools: Sequence[str]
    ) -> None:
        """Hear that *tools* record *window* of *target*."""

    @hookspec
    def window_closed(
        self, session: Any, window: Window, target: Target, tools: Sequence[str], reason: str
    ) -> None:
        """Hear that they do so no longer; `"end"` is the usual *reason*. Exports come later."""

    @hookspec
    def tick(self, session: Any) -> None:
        """Look around; called about once a second, but not while an earlier hook still runs."""

    @hookspec
    def session_closing(self, session: Any) -> None:
        """Hear that *session* begins to close; windows that are open close after this."""
