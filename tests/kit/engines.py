"""An engine with the kit's outside parts, and adapters that each break one law."""

import atexit
import sys
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
