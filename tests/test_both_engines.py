"""One RL step with two real engines at once over HTTP, each in its own environment.

vLLM writes, SGLang judges, this process trains: one config, one run folder, one timeline.
"""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import rlprof
from rlprof_sglang import server_args
from tests import real_drivers
from tests.perfetto_engine import query_all
from tests.ports import free_port
from tests.real_engines import ROOT, interpreter, opened
from tests.sglang_real import tiny as sglang_tiny
from tests.sglang_real.test_examples import flags
from tests.vllm_real import tiny as vllm_tiny
from tests.vllm_real.drivers.server import FLAGS as VLLM_FLAGS

pytestmark = pytest.mark.slow

TOKENS = {"rollout": 9, "judge": 6}
NOTHING = "context_0(0)_generation_0(0)"
"""vLLM's step without tokens after the last one, which frees requests and may be late."""
STAND_INS = ROOT / "tests/sglang_real/stand_ins"


@pytest.fixture(scope="module", name="run")
def _run(tmp_path_factory):
    """Run the steps once, and export a timeline next to the run."""
    run_dir = train(tmp_path_factory.mktemp("both"), *map(interpreter, ("vllm", "sglang")))
    command = str(Path(sys.executable).with_name("rlprof"))
    argv = [command, "export", str(run_dir), "--to", "timeline", "--out", str(run_dir)]
    subprocess.run(argv, check=True, capture_output=True, timeout=300)
    return rlprof.read(run_dir)


def train(home, vllm, sglang):
    """Have vLLM write, SGLang judge and this process train, for two steps; return the run."""
    model = home / "model"
    build = [str(vllm), str(ROOT / "examples/ray_rl/tiny_model.py"), str(model)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    config = {
        "run_dir": str(home / "runs"),
        "tool": "torch",
        "steps": [2],
        "roles": {
            "rollout": {"engine": "vllm", "phases": ["rollout"], "ranks": "all"},
            "judge": {"engine": "sglang", "phases": ["judge"], "ranks": "all"},
            "actor": {"phases": ["update"]},
        },
        "engines": {"sglang": {"iterations": {"skip": 1, "count": 3}}},
    }
    import torch

    def begun(role, python, argv, env):
        launch = rlprof.launch(config, role=role, ranks=[0])
        argv = [str(python), "-m", *argv, str(model), *server_args(launch)]
        return stack.enter_context(server(home, argv, {**launch.env, **env}))

    with ExitStack() as stack:
        writer = begun(
            "rollout", vllm, ["vllm.entrypoints.openai.api_server", *VLLM_FLAGS, "--model"],
            {**vllm_tiny.QUIET, "VLLM_SERVER_DEV_MODE": "1"},
        )  # fmt: skip
        judge = begun(
            "judge", sglang, ["sglang.launch_server", *flags(), "--model-path"],
            {**sglang_tiny.QUIET, "PYTHONPATH": str(STAND_INS)},
        )  # fmt: skip
        for url, process in (writer, judge):
            real_drivers.wait_until_up(url, process)
        with rlprof.open(config, role="actor", rank=0, world_size=1) as prof:
            prof.attach(writer[0], role="rollout", replica=0, ranks=[0])
            prof.attach(judge[0], role="judge", replica=0, ranks=[0])
            for _ in prof.steps((1, 2)):
                with prof.phase("rollout"):
                    said = {"model": str(model), "prompt": "hello", "ignore_eos": True}
                    asked = said | {"max_tokens": TOKENS["rollout"]}
                    real_drivers.post(f"{writer[0]}/v1/completions", asked)
                with prof.phase("judge"):
                    chosen = {"max_new_tokens": TOKENS["judge"], "ignore_eos": True}
                    asked = {"input_ids": [1, 5, 6], "sampling_params": chosen}
                    real_drivers.post(f"{judge[0]}/generate", asked)
                with prof.phase("update"):
                    torch.ones(8, 8, requires_grad=True).sum().backward()
        return prof.run_dir


@contextmanager
def server(home, argv, env):
    """Start a server; yield its address and process, and end everything it started."""
    port = str(free_port())
    with (home / f"{argv[2]}.log").open("wb") as out:
        process = subprocess.Popen(
            [*argv, "--host", "127.0.0.1", "--port", port], cwd=ROOT, stdout=out, stderr=out,
            env=os.environ | {"TMPDIR": str(home)} | env, start_new_session=True,
        )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_one_config_captures_both_engines_and_the_trainer(run):
    """One config records both engines and the trainer in their own phases of a step, all whole."""
    found = {(c.window.id, str(c.target), c.tool): c.state for c in run.captures}

    assert found == {
        ("2/rollout", "rollout replica 0", "vllm"): "whole",
        ("2/rollout", "rollout replica 0 worker 0", "torch"): "whole",
        ("2/judge", "judge replica 0", "sglang"): "whole",
        ("2/judge", "judge replica 0 worker 0", "torch"): "whole",
        ("2/update", "actor 0/1", "torch"): "whole",
    }
    assert run.problems == ()


def test_both_engines_lie_in_their_phases_on_one_timeline(run):
    """The engines' steps lie within the driver's phases of that step on one timeline."""
    timeline = run.path / "timeline.json.gz"
    slices = [one for one in opened(timeline)["traceEvents"] if one.get("ph") == "X"]
    phases = {
        one["name"]: one
        for one in sorted(slices, key=lambda one: one["ts"])
        if one["name"] in ("rollout", "judge", "update")
    }

    for name, phase, least in (("execute_context", "rollout", 9), ("step[", "judge", 3)):
        steps = [
            one for one in slices
            if one.get("cat") == "user_annotation" and one["name"].startswith(name)
            and not one["name"].endswith(NOTHING)
        ]  # fmt: skip
        begin, end = phases[phase]["ts"], phases[phase]["ts"] + phases[phase]["dur"]
        assert len(steps) >= least
        assert [
            (one["name"], one["ts"] - begin, one["ts"] + one["dur"] - end)
            for one in steps
            if one["ts"] < begin or one["ts"] + one["dur"] > end
        ] == []
    shown = query_all(timeline, steps="select count(*) as n from slice where name like 'step[%'")
    assert shown["steps"] == [{"n": 3}]
