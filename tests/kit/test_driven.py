"""The engine of docs/hooks.md, whose processes are real, passes the kit; orders need a run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rlprof
from rlprof.types import Workers
from tests.docs.pages import PAGES, blocks

TESTS = '''\
"""The laws of an engine, for that of the page."""

from contextlib import contextmanager

from pool import Pool, PoolPlugin
from rlprof.testing import EngineTests, overrides


class TestPool(EngineTests):
    plugin = PoolPlugin
    produces = "files"

    @overrides("is not packaged")
    def test_it_is_offered_by_its_name(self): ...

    @contextmanager
    def engine(self):
        engine = Pool(**self.launch().engine_args)
        yield engine
        for process, pipe in zip(engine.processes, engine.pipes):
            if process.is_alive():
                pipe.send(("end", None))
            process.join(60)

    def work(self, handle):
        return handle.ask("generate")

    def kill(self, handle):
        for process in handle.processes:
            process.kill()
            process.join()


del EngineTests
'''


@pytest.mark.slow
def test_the_engine_of_the_page_keeps_every_law(tmp_path):
    """Its processes find the kit's tool, record with it, and may die."""
    (program,) = blocks(PAGES["docs/hooks.md"], "python", mark="runs")
    (tmp_path / "pool.py").write_text(program.text)
    (tmp_path / "test_pool.py").write_text(TESTS)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    argv += ["--basetemp", str(tmp_path / "temp"), "test_pool.py"]
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])

    done = subprocess.run(
        argv, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed, 3 skipped" in done.stdout


def test_without_a_run_there_are_no_orders():
    """At launch a plugin is told where to ask for them."""
    with pytest.raises(rlprof.CaptureError, match=r"workers\.prepare: there is no run"):
        Workers({"torch": {}}).prepare()
