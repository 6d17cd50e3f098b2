"""Installing the checkout as the README says, with pip and with uv, into new environments."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.packaging.conftest import copied

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="checkout")
def _checkout(tmp_path_factory):
    """Copy what git would clone; installing leaves things in it."""
    return copied(tmp_path_factory.mktemp("checkout"))


def run(*argv, cwd=None):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def plugins(bin_dir):
    lines = run(str(bin_dir / "rlprof"), "plugins").splitlines()
    return [line.split()[1] for line in lines if line.startswith(("tool", "engine", "exporter"))]


def test_pip_installs_core_and_the_plugins_asked_for(checkout, tmp_path):
    """Pip install ".[torch,sglang]" brings core, the report and those plugins; never torch."""
    run(sys.executable, "-m", "venv", str(tmp_path / "env"))
    python = tmp_path / "env/bin/python"

    run(str(python), "-m", "pip", "install", "-q", f"{checkout}[torch,sglang]")

    assert plugins(python.parent) == ["torch", "torch_memory", "sglang", "parquet", "report"]
    listed = run(str(python), "-m", "pip", "list", "--format=freeze")
    driven = ("torch==", "sglang==")
    assert not [line for line in listed.splitlines() if line.startswith(driven)]


def test_uv_syncs_the_workspace(checkout, tmp_path):
    """Uv sync makes an environment with everything of this repository in it."""
    run(
        sys.executable,
        "-m",
        "uv",
        "sync",
        "-q",
        "--system-certs",
        "--python",
        sys.executable,
        cwd=checkout,
    )

    assert plugins(checkout / ".venv/bin") == [
        "npu", "nsys", "torch", "torch_memory", "sglang", "vllm", "parquet", "report",
        "timeline",
    ]  # fmt: skip
