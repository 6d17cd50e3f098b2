"""Frameworks that call rlprof themselves: the ten lines of docs/areal.md, and TRL's callback."""

from __future__ import annotations

import contextlib
import re
import sys
import types
from pathlib import Path

import pytest

import rlprof
from rlprof.errors import ConfigError
from rlprof_trl import RlprofCallback

PAGE = (Path(__file__).parent.parent.parent / "docs/areal.md").read_text(encoding="utf-8")
RECIPE = re.search(r"```\n(import contextlib.*?)```", PAGE, re.DOTALL)[1]
CONFIG = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]


def test_scopes_of_the_loop_become_steps_and_phases(tmp_path, monkeypatch):
    """With AReaL's numbers and names; other scopes and AReaL's own tracer are as before."""
    heard = []

    @contextlib.contextmanager
    def trace_scope(name, *, category=None, enable_profiler=False, profiler_args=None, args=None):
        heard.append((name, args))
        yield

    tracer = types.ModuleType("areal.utils.perf_tracer")
    tracer.trace_scope = trace_scope
    utils = types.ModuleType("areal.utils")
    utils.perf_tracer = tracer
    for name, module in (("areal", types.ModuleType("areal")), ("areal.utils", utils)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profile.yaml").write_text(CONFIG)
    own = {}
    exec(RECIPE, own)  # noqa: S102 -- the page is the program

    for step in (0, 1):
        with tracer.trace_scope("train.rollout", category="compute", args={"global_step": step}):
            with tracer.trace_scope("workflow.episode"):
                pass
        with pytest.raises(ZeroDivisionError):
            with tracer.trace_scope("train.ppo_update", args={"global_step": step}):
                raise ZeroDivisionError
    own["prof"].close()

    spans = rlprof.read(own["prof"].run_dir).spans()
    phases = [(one.step, one.name) for one in spans if one.kind == "phase"]
    assert phases == [(0, "rollout"), (0, "ppo_update"), (1, "rollout"), (1, "ppo_update")]
    assert [name for name, _ in heard].count("workflow.episode") == 2
    assert len(RECIPE.strip().splitlines()) <= 10


# What TRL's callback says before there is a trainer


@pytest.mark.parametrize("config", ["nowhere.yaml", {"tool": "torhc", "roles": {"actor": {}}}])
def test_a_fault_of_the_config_is_raised_before_a_model_is_loaded(config, tmp_path, monkeypatch):
    """Whoever makes the callback hears it, not the trainer minutes later; also by RLPROF_CONFIG."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        RlprofCallback(config)

    monkeypatch.setenv("RLPROF_CONFIG", "nowhere.yaml")
    with pytest.raises(ConfigError, match="RLPROF_CONFIG"):
        RlprofCallback()


def test_without_a_config_it_is_off(monkeypatch):
    """And nothing is read or made."""
    monkeypatch.delenv("RLPROF_CONFIG", raising=False)

    assert isinstance(RlprofCallback().prof, rlprof.Off)
