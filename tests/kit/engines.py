"""The engine from outside again, and adapters that each break a law."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path

from rlprof import CaptureError, hookimpl

sys.path.append(str(Path(__file__).parents[2] / "examples/third_party_engine/src"))

from mini_engine import Engine, EngineError
from rlprof_mini import Mini


@contextmanager
def engine(self):
    with Engine(**self.launch().engine_args) as handle:
        yield handle


def work(self, handle):
    return handle.generate(["1 + 1 ="], max_tokens=8)


def kill(self, handle):
    handle.process.kill()
    handle.process.wait()


class GoodEngine(Mini):
    """Keep every law."""


class AwaitsTheEngine(Mini):
    """Have hooks that are coroutines: an engine's may be."""

    @hookimpl
    async def start(self, folder, handle):
        Mini.start(self, folder, handle)

    @hookimpl
    async def stop(self, handle):
        Mini.stop(self, handle)


class PassesOnItsErrors(Mini):
    """Let the engine's own errors out."""

    @hookimpl
    def start(self, folder, handle):
        try:
            Mini.start(self, folder, handle)
        except CaptureError as exc:
            raise EngineError(str(exc)) from exc

    @hookimpl
    def stop(self, handle):
        try:
            Mini.stop(self, handle)
        except CaptureError as exc:
            raise EngineError(str(exc)) from exc


class StopsWhatIsNot(Mini):
    """Stop whether or not something is in progress."""

    @hookimpl
    def stop(self, handle):
        try:
            handle.stop_profile()
        except EngineError as exc:
            raise CaptureError(str(exc)) from exc


class WaitsForTheDead(Mini):
    """Wait for an answer that never comes."""

    @hookimpl
    def stop(self, handle):
        while handle.process.poll() is not None:
            time.sleep(0.01)
        Mini.stop(self, handle)
