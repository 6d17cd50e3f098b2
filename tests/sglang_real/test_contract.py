"""The adapter passes the plugin test kit on a real SGLang."""

import os
import runpy
from contextlib import contextmanager

import pytest

from rlprof_sglang import Sglang
from rlprof_testing import EngineTests
from tests.sglang_real.conftest import STAND_INS
from tests.sglang_real.tiny import QUIET, one_replica


class TestSglang(EngineTests):
    """One engine serves all tests of the kit."""

    plugin = Sglang
    cannot_be_killed = "SGLang ends the process that holds a scheduler that dies, here the tests"
    living = None

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _at_the_end(cls):
        yield
        if cls.living is not None:
            cls.living.shutdown()

    @pytest.fixture(autouse=True)
    def _model(self, model, monkeypatch):
        for name, value in {**QUIET, **self.launch().env}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PYTHONPATH", str(STAND_INS), prepend=os.pathsep)
        self.model = model

    @contextmanager
    def engine(self):
        own = type(self)
        if own.living is None:
            runpy.run_path(str(STAND_INS / "sitecustomize.py"))  # as each of its processes does
            import sglang

            given = {"model_path": str(self.model), "random_seed": 1, **one_replica()}
            own.living = sglang.Engine(**given, **self.launch().engine_args)
            self.work(own.living)  # the first call gives it its loop
        yield own.living

    def work(self, handle):
        asked = {"max_new_tokens": 8, "ignore_eos": True, "temperature": 0}
        return handle.generate(input_ids=[1, 5, 6], sampling_params=asked)["output_ids"]
