"""SGLang's server recorded: `python server.py MODEL PORT --mem-fraction-static 0.5`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

import rlprof
import rlprof_sglang

if TYPE_CHECKING:
    from collections.abc import Callable


def main(model: str, port: str, *more: str) -> None:
    """Generate for three steps, the second of which the config has recorded."""
    launch = rlprof.launch("profile.yaml", role="rollout", ranks=[0])
    argv = [sys.executable, "-m", "sglang.launch_server", "--model-path", model]
    argv += ["--port", port, *more, *rlprof_sglang.server_args(launch)]
    server = subprocess.Popen(argv, env=os.environ | launch.env)
    address = f"http://127.0.0.1:{port}"
    wait_for(f"{address}/health", lambda: server.poll() is None)
    with rlprof.open("profile.yaml", role="driver") as prof:
        prof.attach(address, role="rollout", replica=0, ranks=[0])
        for _ in prof.steps(range(1, 4)):
            with prof.phase("rollout"):
                generate(address)
    server.terminate()
    server.wait()


def wait_for(url: str, is_there: Callable[[], bool]) -> None:
    """Wait until a server answers, as long as it is there."""
    while is_there():
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 -- our own
        except OSError:
            time.sleep(0.5)
        else:
            return
    sys.exit("the server has ended")


def generate(address: str) -> None:
    """Have one request answered."""
    asked = {"input_ids": [1, 5, 6], "sampling_params": {"max_new_tokens": 16}}
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/generate", json.dumps(asked).encode(), head)  # noqa: S310
    urllib.request.urlopen(request, timeout=120).close()  # noqa: S310


if __name__ == "__main__":
    main(*sys.argv[1:])
