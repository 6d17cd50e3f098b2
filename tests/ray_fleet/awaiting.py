"""An engine plugin whose hooks are coroutines, as those for asynchronous engines are."""

from __future__ import annotations

from rlprof import Launch, hookimpl
from rlprof_mini import Mini


class Awaiting(Mini):
    """Awaits what the engine does."""

    @hookimpl
    def configure(self, place):
        return Launch() if place == "launch" else None

    @hookimpl
    async def start(self, folder, handle):
        await handle.start_profile(str(folder))
        self._is_open = True

    @hookimpl
    async def stop(self, handle):
        was_open, self._is_open = self._is_open, False
        if was_open:
            await handle.stop_profile()
