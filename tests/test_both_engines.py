"""One RL step with two real engines at once, each in an environment of its own, over HTTP.

vLLM writes, SGLang judges, this process trains: one config, one run folder, one timeline.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import attrs
import pytest

import rlprof
from rlprof_sglang import server_args as sglang_args
from rlprof_vllm import server_args as vllm_args
from tests.perfetto_engine import query_all
from tests.ports import free_port
from tests.real_drivers import post

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
VLLM, SGLANG = (ROOT / f".envs/{name}/bin/python" for name in ("vllm", "sglang"))
UP_S = 300
TOKENS = {"rollout": 9, "judge": 6}
NOTHING = "context_0(0)_generation_0(0)"
"""vLLM's step after the last, without a token: it lets go what has ended, and may be late."""
STAND_INS = ROOT / "tests/sglang_real/stand_ins"
ON_CPU = {
    "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TORCHDYNAMO_DISABLE": "1",
    "SGLANG_USE_CPU_ENGINE": "1", "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0",
    "OMP_NUM_THREADS": "1", "VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}  # fmt: skip
VLLM_FLAGS = (
    "--load-format=dummy --enforce-eager --dtype=float32 --max-model-len=256 --max-num-seqs=8 "
    f"--kv-cache-memory-bytes={32 << 20}"
).split()
SGLANG_FLAGS = [
    "--load-format=dummy", "--device=cpu", "--dtype=float32", "--attention-backend=torch_native",
    "--sampling-backend=pytorch", "--grammar-backend=none", "--disable-cuda-graph",
    "--skip-tokenizer-init", "--skip-server-warmup", "--sleep-on-idle",
    "--mem-fraction-static=0.1", "--max-total-tokens=4096", "--max-running-requests=8",
    "--log-level=error",
]  # fmt: skip


@attrs.frozen
class Left:
    """What the step has left."""

    run: rlprof.Run
    timeline: Path


@pytest.fixture(scope="module", name="left")
def _left(tmp_path_factory):
    """Go through the step once."""
    for python in (VLLM, SGLANG):
        if not python.exists():
            why = f"there is no {python.relative_to(ROOT)}; `make env-{python.parts[-3]}` makes it"
            is_ci = os.environ.get("CI", "0") not in {"", "0", "false"}
            (pytest.fail if is_ci else pytest.skip)(why)
    home = tmp_path_factory.mktemp("both")
    run_dir = train(home)
    command = str(Path(sys.executable).with_name("rlprof"))
    argv = [command, "export", str(run_dir), "--to", "timeline", "--out", str(home)]
    subprocess.run(argv, check=True, capture_output=True, timeout=300)
    return Left(rlprof.read(run_dir), home / "timeline.json.gz")


def train(home):
    """Have vLLM write, SGLang judge and this process train, for two steps; return the run."""
    model = home / "model"
    build = [str(VLLM), str(ROOT / "examples/ray_rl/tiny_model.py"), str(model)]
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

    with ExitStack() as stack:
        launch = rlprof.launch(config, role="rollout", ranks=[0])
        module = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *VLLM_FLAGS]
        writer = stack.enter_context(server(home, VLLM, [*module, *vllm_args(launch)], launch.env))
        launch = rlprof.launch(config, role="judge", ranks=[0])
        module = ["-m", "sglang.launch_server", "--model-path", str(model), *SGLANG_FLAGS]
        env = {**launch.env, "PYTHONPATH": str(STAND_INS)}
        judge = stack.enter_context(server(home, SGLANG, [*module, *sglang_args(launch)], env))
        for one in (writer, judge):
            one.up()
        with rlprof.open(config, role="actor", rank=0, world_size=1) as prof:
            prof.attach(writer.url, role="rollout", replica=0, ranks=[0])
            prof.attach(judge.url, role="judge", replica=0, ranks=[0])
            for _ in prof.steps((1, 2)):
                with prof.phase("rollout"):
                    said = {"model": str(model), "prompt": "hello", "ignore_eos": True}
                    post(f"{writer.url}/v1/completions", said | {"max_tokens": TOKENS["rollout"]})
                with prof.phase("judge"):
                    chosen = {"max_new_tokens": TOKENS["judge"], "ignore_eos": True}
                    asked = {"input_ids": [1, 5, 6], "sampling_params": chosen}
                    post(f"{judge.url}/generate", asked)
                with prof.phase("update"):
                    torch.ones(8, 8, requires_grad=True).sum().backward()
        return prof.run_dir


@attrs.frozen
class Server:
    """One that was started."""

    url: str
    process: subprocess.Popen
    log: Path

    def up(self):
        """Wait until it answers."""
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(OSError):
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
                return
            time.sleep(0.3)
        raise AssertionError(self.log.read_text(errors="replace")[-4000:])


@contextmanager
def server(home, python, argv, env):
    """Start a server; what it has started ends with it."""
    port = str(free_port())
    log = home / f"{python.parts[-3]}.log"
    given = os.environ | ON_CPU | {"TMPDIR": str(home)} | env
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(python), *argv, "--host", "127.0.0.1", "--port", port],
            env=given, cwd=ROOT, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        yield Server(f"http://127.0.0.1:{port}", process, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_one_config_captures_both_engines_and_the_trainer(left):
    """Each in its own phase of the same step, inside its processes, and all of it is whole."""
    found = {(c.window.id, str(c.target), c.tool): c.state for c in left.run.captures}

    assert found == {
        ("2/rollout", "rollout replica 0", "vllm"): "whole",
        ("2/rollout", "rollout replica 0 worker 0", "torch"): "whole",
        ("2/judge", "judge replica 0", "sglang"): "whole",
        ("2/judge", "judge replica 0 worker 0", "torch"): "whole",
        ("2/update", "actor 0/1", "torch"): "whole",
    }
    assert left.run.problems == ()


def test_they_lie_on_one_timeline_each_in_its_phase(left):
    """The engine steps of both are within the driver's phases of that step, and Perfetto agrees."""
    with gzip.open(left.timeline) as file:
        events = json.load(file)["traceEvents"]
    slices = sorted((one for one in events if one.get("ph") == "X"), key=lambda one: one["ts"])
    steps = {
        name: [
            one for one in slices
            if one.get("cat") == "user_annotation" and one["name"].startswith(name)
            and not one["name"].endswith(NOTHING)
        ]
        for name in ("execute_context", "step[")
    }  # fmt: skip
    phases = {one["name"]: one for one in slices if one["name"] in ("rollout", "judge", "update")}

    assert len(steps["step["]) == 3
    assert len(steps["execute_context"]) >= TOKENS["rollout"]
    for name, phase in (("execute_context", "rollout"), ("step[", "judge")):
        begin, end = phases[phase]["ts"], phases[phase]["ts"] + phases[phase]["dur"]
        outside = [
            (one["name"], one["ts"] - begin, one["ts"] + one["dur"] - end)
            for one in steps[name]
            if one["ts"] < begin or one["ts"] + one["dur"] > end
        ]
        assert outside == []
    shown = query_all(
        left.timeline, steps="select count(*) as n from slice where name like 'step[%'"
    )
    assert shown["steps"] == [{"n": 6}]
