"""The engine `mini` keeps every law of engines."""

from __future__ import annotations

from contextlib import contextmanager

from mini_engine import Engine
from rlprof.testing import EngineTests
from rlprof_mini import Mini


class TestMini(EngineTests):
    plugin = Mini
    options = {"batches": True}

    @contextmanager
    def engine(self):
        with Engine(**self.launch().engine_args) as engine:
            yield engine

    def work(self, handle):
        return handle.generate(["1 + 1 =", "2 + 2 ="], max_tokens=8)

    def kill(self, handle):
        handle.process.kill()
        handle.process.wait()
