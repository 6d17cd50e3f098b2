"""The engine `vllm` keeps every law of engines, with the signatures of a new and an old release."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from rlprof.testing import EngineTests, overrides
from rlprof_vllm import Vllm
from tests.vllm_adapter.generations import engine

pytestmark = pytest.mark.slow


class VllmTests(EngineTests):
    """What both generations share."""

    plugin = Vllm
    options = {"way": "native"}
    tool_inside = "torch"
    release = ""
    kind_of_handle = "AsyncLLM"

    @overrides("the native way asks nothing of the workers; tests/vllm_real has them record")
    def test_each_process_of_a_driven_engine_records_itself(self):
        """Leave it out."""

    @pytest.fixture(autouse=True)
    def _no_variables(self, monkeypatch, tmp_path):
        """Take away what this machine's own vLLM is told."""
        for name in [name for name in os.environ if name.startswith("VLLM_")]:
            monkeypatch.delenv(name)
        self.traces = tmp_path / "traces"

    @contextmanager
    def engine(self):
        said = self.launched(self.launch().engine_args["profiler_config"])
        yield engine(self.release, self.kind_of_handle, directory=self.traces, launched=said)

    def launched(self, wanted):
        """Say how the engine was launched, of what was *wanted*; it writes elsewhere."""
        return wanted | {"torch_profiler_dir": str(self.traces)}

    def work(self, handle):
        return handle.generate("1 + 1 =")

    def kill(self, handle):
        handle.die()


class TestSessions(VllmTests):
    """An AsyncLLM of 0.32: a prefix for each session, and a second start is refused."""

    release = "vllm==0.32.0"


class TestStickyPrefix(VllmTests):
    """An LLM of 0.31: one prefix for all, a second start is passed over; it compresses itself."""

    release = "vllm==0.31.0"
    kind_of_handle = "LLM"

    def launched(self, wanted):
        return super().launched(wanted) | {"torch_profiler_use_gzip": True}


del EngineTests, VllmTests
