"""Abilities of the installed engine, read from its sources."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

import rlprof
import rlprof_sglang._installed
import rlprof_vllm._installed
from rlprof_sglang import Sglang
from rlprof_vllm import Vllm
from tests.sglang_adapter import signatures as sglang_signatures
from tests.signatures.record import number
from tests.vllm_adapter import signatures as vllm_signatures

PLUGINS = {"vllm": Vllm, "sglang": Sglang}
NEWEST = {"vllm": rlprof_vllm._installed.NEWEST, "sglang": rlprof_sglang._installed.NEWEST}
OLDEST = {"vllm": rlprof_vllm._installed.OLDEST, "sglang": rlprof_sglang._installed.OLDEST}
RELEASES = {"vllm": vllm_signatures.RELEASES, "sglang": sglang_signatures.RELEASES}
PROFILER = """
class ProfilerConfig:
    '''Its fields.'''

    profiler: str = ''
    torch_profiler_dir: str = ''
"""

both = pytest.mark.parametrize("engine", PLUGINS)


@pytest.fixture(name="installed")
def _installed(tmp_path, monkeypatch):
    """Return a function that lays out the sources of an engine like an installed package."""

    def installed(engine, version, profiler=PROFILER):
        files = {"envs.py": "", "_version.py": f"__version__ = version = {version!r}\n",
                 "config/profiler.py": profiler, "srt/__init__.py": ""}  # fmt: skip
        for name, text in files.items():
            file = Path(tmp_path, engine, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = SimpleNamespace(submodule_search_locations=[str(tmp_path / engine)])
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
        monkeypatch.setattr(rlprof_sglang._installed, "version_of", lambda _: version)

    return installed


def told(engine, *, warnings=False):
    """Return the advice that the doctor gets, by topic; or the warnings alone."""
    found = PLUGINS[engine].advise(None, {}, on_host=True)
    return {one.about: one.text for one in found if one.level == "warning" or not warnings}


@both
def test_a_variable_that_keeps_rlprofs_plugin_out_is_warned_of(installed, monkeypatch, engine):
    """A variable that lists the plugins of the engine without rlprof is a warning."""
    installed(engine, NEWEST[engine])
    name = f"{engine.upper()}_PLUGINS"
    monkeypatch.setenv(name, "lora")
    why = f"{name} is 'lora', without rlprof; the launch's environment adds it"

    assert told(engine, warnings=True) == {"way worker": f"not admitted: {why}"}
    monkeypatch.setenv(name, "lora,rlprof")
    assert told(engine, warnings=True) == {}


@both
def test_without_the_engine_advice_names_the_right_environment(monkeypatch, engine):
    """Where the engine is not installed, advice fails and points to the engine's environment."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(rlprof.CaptureError, match="where the engine runs"):
        told(engine)


@both
def test_a_release_that_is_not_on_record_is_warned_of(installed, engine):
    """A release newer or older than those on record is a warning that names the limit."""
    installed(engine, "99.1.0")
    newer, both = told(engine, warnings=True)["release"], told(engine)[engine]
    installed(engine, "0.5.15.post1")  # the one in slime's image
    older = told(engine, warnings=True)["release"]

    assert max(RELEASES[engine], key=number) == f"{engine}=={NEWEST[engine]}"
    assert min(RELEASES[engine], key=number) == f"{engine}=={OLDEST[engine]}"
    assert [one in both for one in ("99.1.0", NEWEST[engine])] == [True] * 2
    assert f"99.1.0 is newer than {NEWEST[engine]}" in newer
    assert f"0.5.15.post1 is older than {OLDEST[engine]}" in older


def test_a_profiler_that_moved_does_not_stop_the_launch(installed):
    """If vLLM's profiler config has moved, the launch leaves it out and the doctor warns."""
    installed("vllm", NEWEST["vllm"], profiler="")
    roles = {"rollout": {"engine": "vllm"}}

    launch = rlprof.launch({"tool": "torch", "steps": [1], "roles": roles}, role="rollout")

    assert "profiler_config" not in launch.engine_args
    assert "elsewhere" in told("vllm", warnings=True)["way native"]


@pytest.mark.parametrize(("value", "is_told"), [("", False), ("0", False), ("1", True)])
def test_sglangs_second_profiler_in_the_environment_is_warned_of(
    installed, monkeypatch, value, is_told
):
    """SGLANG_PROFILE_V2 is a warning with a remedy, unless it is off."""
    installed("sglang", NEWEST["sglang"])
    monkeypatch.setenv("SGLANG_PROFILE_V2", value)

    assert ("unset it" in told("sglang", warnings=True).get("way native", "")) is is_told
