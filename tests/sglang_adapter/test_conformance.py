"""The engine `sglang` keeps every law of engines, on the oldest release and on a newer one."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from rlprof.testing import EngineTests, overrides
from rlprof_sglang import Sglang
from tests.sglang_adapter.generations import engine, installed

pytestmark = pytest.mark.slow


class SglangTests(EngineTests):
    """What both generations share."""

    plugin = Sglang
    tool_inside = "torch"
    release = ""

    @overrides("the native way asks nothing of the workers; tests/sglang_real has them record")
    def test_each_process_of_a_driven_engine_records_itself(self):
        """Leave it out."""

    @pytest.fixture(autouse=True)
    def _its_modules(self, monkeypatch, tmp_path):
        """Import the SGLang of that release, and nothing this machine's own is told."""
        for name in [name for name in os.environ if name.startswith("SGLANG_")]:
            monkeypatch.delenv(name)
        self.options = {"way": "native", "profiler_dir": str(tmp_path / "traces")}
        with installed(self.release):
            yield

    @contextmanager
    def engine(self):
        asked = self.launch().engine_args
        handle = engine(self.release, **asked)
        yield handle
        handle.loop.close()

    def work(self, handle):
        return handle.generate("1 + 1 =")

    def kill(self, handle):
        handle.tokenizer_manager.replica.killed_by = "signal 9"


class TestNewer(SglangTests):
    """An Engine of 0.5.21, whose ranks are the process's."""

    release = "sglang==0.5.21"


class TestOldest(SglangTests):
    """An Engine of 0.5.18, whose schedulers have ranks of their own."""

    release = "sglang==0.5.18"


del EngineTests, SglangTests
