"""vLLM's server recorded: `python server.py MODEL PORT --max-model-len 256`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request

import rlprof
import rlprof_vllm


def main(model: str, port: str, *more: str) -> None:
    """Generate for three steps, the second of which the config has recorded."""
    launch = rlprof.launch("profile.yaml", role="rollout", ranks=[0])
    argv = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
    argv += ["--port", port, *more, *rlprof_vllm.server_args(launch)]
    server = subprocess.Popen(argv, env=os.environ | launch.env)
    address = f"http://127.0.0.1:{port}"
    wait_for(f"{address}/health", server)
    with rlprof.open("profile.yaml", role="driver") as prof:
        prof.attach(address, role="rollout", replica=0, ranks=[0])
        for _ in prof.steps(range(1, 4)):
            with prof.phase("rollout"):
                generate(address, model)
    server.terminate()
    server.wait()


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    while server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 -- our own
        except OSError:
            time.sleep(0.5)
        else:
            return
    sys.exit("the server has ended")


def generate(address: str, model: str) -> None:
    """Have one request answered."""
    body = json.dumps({"model": model, "prompt": "hello", "max_tokens": 16}).encode()
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/v1/completions", body, head)  # noqa: S310
    urllib.request.urlopen(request, timeout=120).close()  # noqa: S310


if __name__ == "__main__":
    main(*sys.argv[1:])
