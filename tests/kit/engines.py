"""An engine with the kit's outside parts, and adapters that each break one law."""

import asyncio
import atexit
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from rlprof import CaptureError, hookimpl

sys.path.append(str(Path(__file__).parents[2] / "examples/third_party_engine/src"))

from mini_engine import Engine, EngineError
from rlprof_mini import Mini
from tests.fakes.engines import Hive

_lent: list[Engine] = []


@contextmanager
def engine(self):
    """Lend the one engine; replace it if it was killed or still records."""
    if not _lent:
        _lent.append(Engine(**self.launch().engine_args))
        atexit.register(_lent[0].close)
    (handle,) = _lent
    try:
        yield handle
    finally:
        if handle.process.poll() is not None or handle.is_profiling():
            _lent.pop().close()


def work(self, handle):
    return handle.generate(["1 + 1 ="], max_tokens=8)


def kill(self, handle):
    handle.process.kill()
    handle.process.wait()


class GoodEngine(Mini):
    """Keep every law."""


@contextmanager
def as_its_own():
    """Raise the engine's own error in place of a CaptureError."""
    try:
        yield
    except CaptureError as exc:
        raise EngineError(str(exc)) from exc


class PassesOnItsErrors(Mini):
    """Let the engine's own errors through."""

    start = hookimpl(as_its_own()(Mini.start))
    stop = hookimpl(as_its_own()(Mini.stop))


class WaitsForTheDead(Mini):
    """Wait for an answer from an engine that is dead."""

    @hookimpl
    def stop(self, handle):
        while handle.process.poll() is not None:
            time.sleep(0.01)
        Mini.stop(self, handle)


@contextmanager
def cells(self):
    yield [0, 1]


class GoodHive(Hive):
    """Have the kit's tool record in each process."""


class TellsNobody(Hive):
    """Declare `drives`, but pass no orders on."""

    def _tell(self, handle, text):
        """Pass nothing on."""


class AsyncEngine:
    """An engine whose methods belong to an event loop, like vLLM's."""

    def __init__(self, engine, loop):
        self.process, self.loop = engine.process, loop
        self._engine = engine

    def __getattr__(self, name):
        method = getattr(self._engine, name)

        async def call(*args, **options):
            assert asyncio.get_running_loop() is self.loop
            return await asyncio.to_thread(method, *args, **options)

        return call


@contextmanager
def async_engine(self):
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with engine(self) as handle:
            yield AsyncEngine(handle, loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def async_work(self, handle):
    promise = handle.generate(["1 + 1 ="], max_tokens=8)
    return asyncio.run_coroutine_threadsafe(promise, handle.loop).result()


class AwaitsOnItsLoop(Mini):
    """Await a handle that answers on its own loop only."""

    @hookimpl
    def configure(self, place, handle):
        return Mini.configure(self, place, handle) if place == "launch" else self.check(handle)

    async def check(self, handle):
        await handle.is_profiling()

    @hookimpl
    async def start(self, folder, handle):
        try:
            await handle.start_profile(str(folder))
        except EngineError as exc:
            raise CaptureError(str(exc)) from exc
        self._is_open = True

    @hookimpl
    async def stop(self, handle):
        was_open, self._is_open = self._is_open, False
        try:
            if was_open and await handle.is_profiling():
                await handle.stop_profile()
        except EngineError as exc:
            raise CaptureError(str(exc)) from exc
