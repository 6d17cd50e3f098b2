"""The programs that the README of rlprof-sglang quotes, run on a real engine."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.ports import free_port
from tests.real_engines import ROOT, example
from tests.sglang_real.conftest import STAND_INS
from tests.sglang_real.tiny import QUIET, one_replica

pytestmark = pytest.mark.slow


def flags():
    """Return the arguments of a server on its command line."""
    return [
        word
        for name, value in one_replica().items()
        for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
    ]


ARGUMENTS = {
    "engine.py": lambda: [json.dumps(one_replica())],
    "as_verl.py": lambda: [json.dumps(one_replica())],
    "server.py": lambda: [str(free_port()), *flags()],
    "as_slime.py": lambda: [json.dumps(one_replica()), str(free_port())],
}


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory, model):
    """Run all programs, two at a time: each spends most of its time importing SGLang."""
    with ThreadPoolExecutor(2) as pool:
        yield {
            program: pool.submit(run, tmp_path_factory.mktemp("example"), program, model)
            for program in ARGUMENTS
        }


def run(home, program, model):
    """Run a program next to its config, to its end; read what it recorded."""
    folder = home / "sglang"
    shutil.copytree(ROOT / "examples/sglang", folder)
    own = {"PYTHONPATH": str(STAND_INS), "TMPDIR": str(home), "RAY_AUTH_MODE": "disabled"}
    given = [str(model), *ARGUMENTS[program]()]
    return example(folder, program, *given, log=home / "log", env=QUIET | own)


@pytest.mark.parametrize("program", ARGUMENTS)
def test_a_replica_is_recorded_inside_its_scheduler(runs, program):
    """Each program records step 2 whole inside the scheduler, with the requests."""
    found = runs[program].result()
    (engine,) = [c for c in found.captures if c.tool == "sglang"]

    assert {c.state for c in found.captures} == {"whole"}
    assert {c.window.start_step for c in found.captures} == {2}
    assert sorted(c.tool for c in found.captures) == ["sglang", "torch"]
    assert found.problems == ()
    assert any("_requests." in artifact.path for artifact in engine.artifacts)
    assert "requests" not in engine.unsupported
