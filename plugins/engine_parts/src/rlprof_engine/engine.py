"""An engine as its adapter sees it; the usual answers are those of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Engine:
    """One engine: an object in this process, or a server in another."""

    facts: Any

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop it runs on; None: it has none, or any loop will do."""
        return None

    @property
    def is_errored(self) -> bool:
        """Whether it is known to be dead."""
        return False

    async def look(self) -> None:
        """Find out what takes a call; these calls can do no harm."""

    async def order(self, text: str) -> list[dict[str, Any]]:
        """Pass an order on to its processes; return their answers, also those of frontends."""
        raise NotImplementedError

    async def run(self, function: Callable[[], object]) -> None:
        """Call *function* where the engine's frontend runs, uninterrupted by it."""
        function()
