"""What TRL's callback says before there is a trainer."""

from __future__ import annotations

import pytest

import rlprof
from rlprof.errors import ConfigError
from rlprof_trl import RlprofCallback


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
