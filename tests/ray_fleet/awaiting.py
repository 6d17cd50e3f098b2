"""Engine plugins: one whose hooks are coroutines, and one that drives the tools of the run."""

from __future__ import annotations

from rlprof import CaptureError, Launch, hookimpl
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


class Driving(Mini):
    """Has the run's tools record inside the engine: here it only asks for one."""

    drives = True

    @hookimpl
    def configure(self, place):
        return Launch(engine_args={"profiler": True}) if place == "launch" else None

    @hookimpl
    def start(self, folder, handle, workers):
        if not workers.tools:
            raise CaptureError("no tool was named for the engine")
        Mini.start(self, folder, handle)
