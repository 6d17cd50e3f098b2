"""Plugins: engines that await or that drive the tools of the run; a tool bound to its thread."""

import threading
from shutil import copyfile

from rlprof import Artifact, CaptureError, Launch, hookimpl
from rlprof_mini import Mini


class Awaiting(Mini):
    """Awaits the coroutines of the engine."""

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
    """Has the run's tools record inside the engine; here it only requires that a tool is named."""

    drives = True

    @hookimpl
    def configure(self, place):
        return Launch(engine_args={"profiler": True}) if place == "launch" else None

    @hookimpl
    def start(self, folder, handle, workers):
        if not workers.tools:
            raise CaptureError("no tool was named for the engine")
        Mini.start(self, folder, handle)


class Bound:
    """Like torch with a GPU: it must be stopped on the thread that started it."""

    runs_on = "thread"

    @hookimpl
    def start(self, folder):
        self._thread = threading.get_ident()
        (folder / "thread").write_text(threading.current_thread().name)

    @hookimpl
    def stop(self):
        if self._thread != threading.get_ident():
            raise CaptureError("it was stopped on another thread")

    @hookimpl
    def export(self, capture, folder, out):
        copyfile(folder / "thread", out / f"{capture.stem}.txt")
        return [Artifact(f"{capture.stem}.txt", kind="files", format="text")]
