"""A server that refuses to record: nothing of it is asked to stop, and training goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import rlprof

pytestmark = pytest.mark.slow

ROUTES = {
    "/start_profile": {"post": {"requestBody": {"content": {}}}},
    "/stop_profile": {"post": {}},
    "/is_sleeping": {"get": {}},
}
REFUSALS = {
    404: "it was launched without a profiler",
    409: "somebody else is profiling",
    500: "answered 500: not so",
}


class Handler(BaseHTTPRequestHandler):
    """Answers like vLLM's server; what it is posted is in the server's list."""

    def do_GET(self):
        answers = {
            "/openapi.json": {"paths": ROUTES},
            "/is_sleeping": {"is_sleeping": False},
            "/version": {"version": "0.32.0"},
        }
        self._say(200, json.dumps(answers.get(self.path, {})))

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posted.append(self.path)
        code = self.server.code if self.path == "/start_profile" else 200
        self._say(code, "not so" if code != 200 else "")

    def _say(self, code, text):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(name="server")
def _server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.posted, server.code = [], 200
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


# failures.md: vllm-profiled
@pytest.mark.parametrize("code", REFUSALS)
def test_a_server_that_refuses_is_not_asked_to_stop(server, tmp_path, code):
    """Nothing of ours has begun: a stop would end somebody else's session. After a 500 it may."""
    server.code = code
    config = {
        "run_dir": str(tmp_path / "runs"),
        "scratch_dir": str(tmp_path / "scratch"),
        "steps": [1],
        "roles": {"rollout": {"engine": "vllm", "phases": ["rollout"], "tool": []}},
        "engines": {"vllm": {"profiler_dir": str(tmp_path / "traces")}},
    }

    with rlprof.open(config, role="trainer") as prof:
        prof.attach(f"http://127.0.0.1:{server.server_port}", role="rollout")
        for _ in prof.steps([1]):
            with prof.phase("rollout"):
                pass

    (capture,) = rlprof.read(prof.run_dir).captures
    assert capture.state == "failed"
    assert REFUSALS[code] in " ".join(capture.notes)
    assert server.posted == ["/start_profile", "/stop_profile"][: 2 if code == 500 else 1]


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
