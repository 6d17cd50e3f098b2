"""A server that refuses to record: nothing of it is asked to stop, and training goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.engine_parts.lab import notes, serving, states
from tests.vllm_adapter.test_failures import Lab

pytestmark = pytest.mark.slow

ROUTES = {
    "/start_profile": {"post": {"requestBody": {"content": {}}}},
    "/stop_profile": {"post": {}},
    "/is_sleeping": {"get": {}},
}
REFUSALS = {
    404: "it was launched without a profiler",
    409: "somebody else is profiling",
    500: 'answered 500: "not so"',
}


GOT = {
    "/openapi.json": {"paths": ROUTES},
    "/is_sleeping": {"is_sleeping": False},
    "/version": {"version": "0.32.0"},
}


# failures.md: vllm-profiled
@pytest.mark.parametrize("code", REFUSALS)
def test_a_server_that_refuses_is_not_asked_to_stop(tmp_path, code):
    """Nothing of ours has begun: a stop would end somebody else's session. After a 500 it may."""
    lab = Lab(tmp_path)

    def answers(path, _):
        return (code, "not so") if path == "/start_profile" else (200, GOT.get(path, {}))

    with serving(answers) as server:
        run = lab.train(server.address, steps=(1,), profiler_dir=str(lab.traces))

    assert states(run) == ["failed"]
    assert REFUSALS[code] in notes(run, 0)
    asked = ["/start_profile", "/stop_profile"][: 2 if code == 500 else 1]
    assert [path for path, _ in server.posted] == asked


SILENT = """
import socket, sys, rlprof
silent = socket.create_server(("127.0.0.1", 0))
limits = {"configure_timeout_s": 1, "start_timeout_s": 1, "stop_timeout_s": 1}
config = {"run_dir": sys.argv[1], "scratch_dir": sys.argv[1], "steps": [1], "limits": limits,
          "roles": {"rollout": {"engine": "vllm", "phases": ["rollout"], "tool": []}}}
with rlprof.open(config, role="trainer") as prof:
    prof.attach(f"http://127.0.0.1:{silent.getsockname()[1]}", role="rollout")
"""


# failures.md: engine-gone
def test_a_server_that_never_answers_does_not_hold_up_the_end_of_the_process(tmp_path):
    """The process ends while a question to the server is still open."""
    done = subprocess.run([sys.executable, "-c", SILENT, str(tmp_path)], timeout=60, check=False)

    assert done.returncode == 0
