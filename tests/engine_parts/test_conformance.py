"""Both engines pass the plugin test kit, as a new and an old release have it."""

import asyncio
import os
import threading
from contextlib import contextmanager

import pytest

from rlprof.testing import EngineTests, overrides
from rlprof_sglang import Sglang
from rlprof_vllm import Vllm
from tests.fakes import sglang_engines as sglang
from tests.vllm_adapter import generations as vllm


class NativeTests(EngineTests):
    tool_inside = "torch"

    @overrides("the native way asks nothing of the workers; the suites on real engines have that")
    def test_each_process_of_a_driven_engine_records_itself(self):
        """Leave it out."""

    @pytest.fixture(autouse=True)
    def _nothing_is_set(self, monkeypatch, tmp_path):
        """Clear this machine's variables for vLLM and SGLang."""
        for name in [name for name in os.environ if name.startswith(("VLLM_", "SGLANG_"))]:
            monkeypatch.delenv(name)
        self.traces = tmp_path / "traces"
        self.options = {"way": "native", "profiler_dir": str(self.traces)}

    def work(self, handle):
        return handle.generate("1 + 1 =")


class VllmTests(NativeTests):
    plugin = Vllm

    @contextmanager
    def engine(self):
        said = self.launch().engine_args["profiler_config"] | self.launched
        said |= {"torch_profiler_dir": str(self.traces)}
        yield vllm.engine(self.release, self.form, directory=self.traces, launched=said)

    def kill(self, handle):
        handle.die()


class TestSessions(VllmTests):
    """An AsyncLLM of 0.32 on the loop it names: a prefix for each session, one start at a time."""

    release, form, launched = "vllm==0.32.0", "AsyncLLM", {}

    @contextmanager
    def engine(self):
        self.home = asyncio.new_event_loop()
        thread = threading.Thread(target=self.home.run_forever)
        thread.start()
        try:
            with super().engine() as handle:
                handle.output_handler = None  # it has had no call
                yield handle
        finally:
            self.home.call_soon_threadsafe(self.home.stop)
            thread.join()
            self.home.close()

    def loop(self, handle):
        return self.home


@pytest.mark.slow
class TestStickyPrefix(VllmTests):
    """An LLM of 0.31: one prefix for all, a second start is ignored; traces are compressed."""

    release, form, launched = "vllm==0.31.0", "LLM", {"torch_profiler_use_gzip": True}


class TestSglang(NativeTests):
    """An Engine from 0.5.19 on, which keeps resolved arguments apart."""

    plugin = Sglang

    @pytest.fixture(autouse=True)
    def _its_modules(self, _nothing_is_set):
        with sglang.installed():
            yield

    @contextmanager
    def engine(self):
        handle = sglang.engine(**self.launch().engine_args)
        yield handle
        handle.loop.close()

    def kill(self, handle):
        handle.tokenizer_manager.replica.killed_by = "signal 9"


del EngineTests, NativeTests, VllmTests
