"""The programs that the README of rlprof-vllm quotes, run on a real engine."""

import json
import shutil

import pytest

from tests.cases import cases
from tests.ports import free_port
from tests.real_engines import KNOWN, ROOT, counters_of, example
from tests.vllm_real.drivers.server import FLAGS
from tests.vllm_real.tiny import QUIET, SMALL

pytestmark = pytest.mark.slow
ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}


@pytest.fixture(name="run")
def _run(tmp_path, model):
    """Return a function that runs a program next to its config, and reads what it recorded."""
    folder = tmp_path / "vllm"
    shutil.copytree(ROOT / "examples/vllm", folder)

    def run(program, *arguments, **more):
        env = QUIET | {"PYTHONPATH": str(folder), "TMPDIR": str(tmp_path)} | more
        return example(folder, program, model, *arguments, log=tmp_path / "log", env=env)

    return run


def tools_of(run):
    assert {c.state for c in run.captures} == {"whole"}
    assert {c.window.start_step for c in run.captures} == {2}
    return sorted(c.tool for c in run.captures)


@cases("program, env", ("async_llm.py", {}), ("extension.py", ONE_PROCESS))
def test_an_engine_in_the_program_is_recorded_inside_its_worker(run, program, env):
    """Step 2 is whole, with the trace of the worker, the requests and the counters."""
    found = run(program, json.dumps(SMALL), **env)

    assert tools_of(found) == ["torch", "vllm"]
    assert {frozenset(values) for values in counters_of(found)} == {frozenset(KNOWN)}


def test_a_server_is_recorded_by_its_own_profiler(run):
    """A server with the launch's arguments, attached by its address, records step 2."""
    assert tools_of(run("server.py", str(free_port()), *FLAGS)) == ["vllm"]


def test_rank_0_of_torchrun_may_have_an_engine(run):
    """Both ranks record the step, and so does the engine, in its worker and in its frontend."""
    launcher = "-m torch.distributed.run --standalone --nproc-per-node 2"

    found = run(f"{launcher} torchrun.py", json.dumps(SMALL))

    assert tools_of(found) == ["torch", "torch", "torch", "vllm"]
