"""A second shell on the node of a loop: `rlprof attach`, as soon as the loop trains."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

_LOOK_S = 0.2
_CONFIG = "tools: {torch: {contents: [cpu, shapes]}}\ntool: torch\nroles: {actor: {}}\n"


def attach(
    loop: subprocess.Popen[bytes], home: Path, tmp: Path, steps: int, is_killed: bool
) -> int | None:
    """Record *steps* of *loop*, whose Ray is in *tmp*; return its exit code, or None.

    With *is_killed* the shell is killed as soon as it records. None: the loop ended before.
    The files `shell-waits` and `shell-ended` say how far it is; requests of the loop wait for them.
    """
    try:
        while not (home / "metrics.jsonl").exists():  # verl makes it when its actors are there
            if loop.poll() is not None:
                return None
            time.sleep(_LOOK_S)
        (port,) = tmp.glob("ray/session_latest/gcs_server_port_*")  # of the cluster's control store
        return _attach(loop, home, port.read_text(), steps, is_killed)
    finally:
        for file in ("shell-waits", "shell-ended"):
            (home / file).touch()


def _attach(
    loop: subprocess.Popen[bytes], home: Path, port: str, steps: int, is_killed: bool
) -> int:
    (home / "profile.yaml").write_text(_CONFIG)
    argv = [
        sys.executable, "-m", "rlprof", "attach", "--address", f"127.0.0.1:{port}",
        "--tool", "torch", "--config", str(home / "profile.yaml"), "--steps", str(steps),
        "--run-dir", str(home / "runs"), "--yes",
    ]  # fmt: skip
    env = os.environ | {"RAY_AUTH_MODE": "disabled"}
    with (home / "shell").open("wb") as out:
        shell = subprocess.Popen(argv, cwd=home, env=env, stdout=out, stderr=out)
        try:
            while shell.poll() is None and loop.poll() is None:
                printed = (home / "shell").read_bytes()
                if b"waiting for the next step" in printed:
                    (home / "shell-waits").touch()
                if is_killed and b": recording " in printed:
                    shell.kill()
                time.sleep(_LOOK_S)
            return shell.wait(60)
        finally:
            shell.kill()
