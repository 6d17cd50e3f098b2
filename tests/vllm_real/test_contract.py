"""The adapter passes the plugin test kit on a real vLLM."""

import os
import signal
from contextlib import contextmanager

import pytest

from rlprof_testing import EngineTests
from rlprof_vllm import Vllm
from tests.vllm_real.tiny import QUIET, SMALL


class TestVllm(EngineTests):
    """One engine serves all tests of the kit but those that end it."""

    plugin = Vllm
    living = None

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _at_the_end(cls):
        yield
        cls._end()

    @pytest.fixture(autouse=True)
    def _model(self, model, monkeypatch):
        for name, value in QUIET.items():
            monkeypatch.setenv(name, value)
        self.model = model

    @contextmanager
    def engine(self):
        from vllm import LLM

        own = type(self)
        if own.living is None:
            own.living = LLM(str(self.model), seed=1, **SMALL, **self.launch().engine_args)
        yield own.living

    @classmethod
    def _end(cls):
        engine, cls.living = cls.living, None
        if engine is not None:
            engine.llm_engine.engine_core.shutdown()

    def work(self, handle):
        from vllm import SamplingParams

        asked = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
        (done,) = handle.generate(["1 + 1 ="], asked, use_tqdm=False)
        return done.outputs[0].token_ids

    def kill(self, handle):
        (process,) = handle.llm_engine.engine_core.resources.engine_manager.processes
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        self._end()
