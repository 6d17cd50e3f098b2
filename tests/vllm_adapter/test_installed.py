"""What the installed vLLM can do, read from its sources."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_vllm import Vllm, _installed

NEWEST = {
    "envs.py": "",
    "_version.py": '__version__ = version = "0.33.0"\n',
    "config/profiler.py": (
        "class ProfilerConfig:\n    profiler: str = ''\n    torch_profiler_dir: str = ''\n"
        "    max_iterations: int = 0\n"
    ),
}

ENGINE = {"engine": "vllm"}


@pytest.fixture(name="installed")
def _laid_out(tmp_path, monkeypatch):
    """Return a function that lays out sources as an installed vLLM."""
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)

    def installed(files):
        for name, text in files.items():
            file = tmp_path / "vllm" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = SimpleNamespace(submodule_search_locations=[str(tmp_path / "vllm")])
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)

    return installed


def capabilities():
    """Return what the doctor is told, by what it is about."""
    return {one.about: one.text for one in Vllm.advise(None, {}, on_host=True)}


def warnings():
    """Return the warnings among it."""
    found = Vllm.advise(None, {}, on_host=True)
    return {one.about: one.text for one in found if one.level == "warning"}


def test_both_ways_are_named(installed):
    """With the release; nothing is warned of."""
    installed(NEWEST)

    said = capabilities()

    assert said["vllm"] == "0.33.0"
    assert [*said] == ["vllm", "way worker", "way native"]
    assert warnings() == {}


def test_an_environment_that_keeps_our_plugin_out_is_named(installed, monkeypatch):
    """A warning: VLLM_PLUGINS names those vLLM may load, and ours is not among them."""
    installed(NEWEST)
    monkeypatch.setenv("VLLM_PLUGINS", "lora")

    why = "VLLM_PLUGINS is 'lora', without rlprof; the launch's environment adds it"
    assert warnings() == {"way worker": f"not admitted: {why}"}


def test_without_vllm_it_is_said_where_to_install(monkeypatch):
    """The trainer's environment has none, and need not."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(rlprof.CaptureError, match="where the engine runs"):
        Vllm.advise(None, {}, on_host=True)


def test_a_release_nobody_has_read_is_warned_of(installed):
    """The newest that was read is the newest in the record of releases."""
    releases = json.loads(Path(__file__).with_name("signatures.json").read_bytes())
    newest = max(tuple(map(int, one.split("==")[1].split("."))) for one in releases)
    assert ".".join(map(str, newest)) == _installed.NEWEST

    installed({**NEWEST, "_version.py": '__version__ = version = "99.1.0"\n'})

    assert "99.1.0 is newer" in warnings()["release"]


def test_a_profiler_that_moved_is_no_reason_for_an_engine_not_to_start(installed):
    """The launch asks nothing of it, for half of it would be refused; the doctor warns."""
    installed({**NEWEST, "config/profiler.py": ""})

    launch = rlprof.launch(
        {"tool": "torch", "steps": [1], "roles": {"rollout": ENGINE}}, role="rollout"
    )

    assert "profiler_config" not in launch.engine_args
    assert "elsewhere" in warnings()["way native"]
