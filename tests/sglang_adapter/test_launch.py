"""What an engine must be born with to be recorded in its schedulers, and timed."""

from __future__ import annotations

import pytest

import rlprof
from rlprof import Launch
from rlprof_sglang import SglangOptions, server_args
from rlprof_sglang._launch import engine_launch


@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [(None, None), ("lora", "lora,rlprof"), ("rlprof,lora", None), ("", None)],
    ids=["all", "another", "ours", "empty"],
)
def test_an_engine_whose_plugins_are_listed_is_given_ours(monkeypatch, allowed, wanted):
    """SGLANG_PLUGINS, if it says anything, names those SGLang loads."""
    monkeypatch.delenv("SGLANG_PLUGINS", raising=False)
    if allowed is not None:
        monkeypatch.setenv("SGLANG_PLUGINS", allowed)

    launch = engine_launch(SglangOptions())

    assert launch.env.get("SGLANG_PLUGINS") == wanted
    assert launch.env["RLPROF_SGLANG"] == "1"


@pytest.mark.parametrize(("asked", "wanted"), [(True, {"enable_metrics": True}), (False, {})])
def test_requests_say_when_they_waited_with_metrics_alone(asked, wanted):
    """Without them SGLang keeps it to itself; who wants no requests pays for none."""
    config = {"steps": [1], "roles": {"rollout": {"engine": "sglang", "tool": "torch"}},
              "engines": {"sglang": {"requests": asked}}}  # fmt: skip

    assert rlprof.launch(config, role="rollout").engine_args == wanted


def test_the_server_gets_the_same_as_arguments():
    """A switch alone where it is on, nothing where it is off, and values as they are."""
    launch = Launch(engine_args={"enable_metrics": True, "sleep_on_idle": False, "tp_size": 2})

    assert server_args(launch) == ["--enable-metrics", "--tp-size", "2"]
