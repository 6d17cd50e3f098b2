"""A track that other processes record: the members of a fleet, seen from its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rlprof.session._instruments import Instruments, OpenWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand
    from rlprof.session._context import Context
    from rlprof.session._scope import Scope
    from rlprof.types import Target, Window


class MembersWindow(Protocol):
    """One window of the members."""

    def start(self) -> None:
        """Ask all of them to open it, and to enter its phase if it has one."""

    def stop(self, reason: str) -> None:
        """Ask all of them to close it."""

    def enter(self, key: int, name: str, step: int | None) -> None:
        """Ask them to enter the phase *name* of *step*, which *key* stands for."""

    def leave(self, key: int) -> None:
        """Ask them to leave it, if they have entered it; phases end in any order."""


class Members(Protocol):
    """The argument of `Session.lead`: other processes that record one role."""

    @property
    def why_full(self) -> str:
        """Why no further window may open; empty if one may."""

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Take the tools that record them, before a window needs these."""

    def prepared(
        self, uses: Sequence[ToolUse], window: Window, demand: Demand | None
    ) -> MembersWindow:
        """Return *window* of the chosen members, ready to start."""

    def keys(self, demand: Demand | None) -> list[dict[str, Any]]:
        """Return the fields that name each chosen member in a manifest line."""

    def watch(self) -> None:
        """Take the answers that arrived; any thread calls it, and it never waits."""

    def end(self) -> None:
        """Close the sessions of the members."""


class Elsewhere(Instruments):
    """Members that stand for the recorders of a process."""

    def __init__(
        self, target: Target, context: Context, members: Members, *, needs_tools: bool
    ) -> None:
        super().__init__(target, context, 0)
        self._members = members
        self.needs_tools = needs_tools

    def __len__(self) -> int:
        return int(self.needs_tools)

    @property
    def why_full(self) -> str:
        """Why no further window may open; empty if one may."""
        return self._members.why_full

    def prepared(
        self, uses: Sequence[ToolUse], window: Window, demand: Demand | None
    ) -> OpenWindow:
        """Make *window* ready on the members."""
        return _Open(window, self._members.prepared(uses, window, demand), uses)

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Give the members their tools."""
        self._members.take(uses)

    def keys(self, demand: Demand | None) -> list[dict[str, Any]]:
        """Return the fields that name each member in a manifest line."""
        return self._members.keys(demand)

    def watch(self) -> None:
        """Take the answers of members that arrived."""
        self._members.watch()

    def end(self) -> None:
        """Close the sessions of the members."""
        self._members.end()


class _Open(OpenWindow):
    """A window that is open on the members."""

    def __init__(self, window: Window, there: MembersWindow, uses: Sequence[ToolUse]) -> None:
        super().__init__(window, ())
        self.tools = tuple(use.name for use in uses)
        self.starts = (there.start,)
        self._there = there

    def stop(self, reason: str) -> None:
        """Ask the members to close it; once."""
        if self.is_recording:
            super().stop(reason)
            self._there.stop(reason)

    def push(self, scope: Scope) -> None:
        """Ask the members to enter a phase; they entered the window's phase with it."""
        if scope is not self.owner:
            self._there.enter(scope.id, scope.name, scope.step)

    def pop(self, scope: Scope) -> None:
        """Ask the members to leave it."""
        if scope is not self.owner:
            self._there.leave(scope.id)
