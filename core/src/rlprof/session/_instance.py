"""A plugin with one set of options, and where it can be called once it is configured."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.answers import Ready, loop_of, runs_on_of

if TYPE_CHECKING:
    from rlprof.config import ToolUse
    from rlprof.plugins import Hooks
    from rlprof.session._link import Link
    from rlprof.types import RunsOn


@attrs.define
class Instance:
    """Made for each set of options that is asked for; `configure` is called once on it."""

    use: ToolUse
    plugin: Any
    hooks: Hooks
    link: Link | None
    ready: Ready = attrs.field(factory=Ready)
    """Where it runs, as `configure` said."""
    refused: str = ""
    """Why it cannot be used with these options."""

    @property
    def usual(self) -> RunsOn:
        """Where such a plugin runs if it does not say."""
        return "thread" if self.link is None else "process"

    @property
    def needs_its_thread(self) -> bool:
        """Whether it must be stopped on the thread it was started on."""
        return runs_on_of(self.ready, self.plugin, self.usual) == "thread"

    @property
    def needs_this_loop(self) -> bool:
        """Whether the engine needs the event loop that runs on the calling thread."""
        if self.link is None:
            return False
        loop = None
        with suppress(Exception):  # what a plugin says of itself may raise, and windows must close
            loop = loop_of(self.ready)
        return self.link.is_on_its_loop(loop)
