"""A config with a light tool, and an environment without other profilers."""

import json

import pytest

from tests.doctor.running import install_tool


@pytest.fixture(autouse=True)
def _no_profiler(monkeypatch):
    for name in ("LD_PRELOAD", "KINETO_USE_DAEMON", "TORCH_DEVICE_BACKEND_AUTOLOAD", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(name="module")
def _module(monkeypatch, tmp_path):
    return install_tool(monkeypatch, tmp_path / "site")


@pytest.fixture(name="profile")
def _profile(module, config, tmp_path):
    """Return a function that writes a config with an actor recorded by `mad`."""

    def write(**changes):
        file = tmp_path / "profile.yaml"
        file.write_text(json.dumps(config(**{"tool": "mad", "steps": [1]} | changes)))
        return file

    return write
