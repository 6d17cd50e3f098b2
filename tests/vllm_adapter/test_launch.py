"""What an engine must be born with to be recorded."""

from __future__ import annotations

import pytest

import rlprof
from rlprof import Target
from rlprof_vllm._launch import engine_launch
from rlprof_vllm._options import VllmOptions

TARGET = Target("rollout", 0, 1, replica=0)


@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [(None, None), ("lora", "lora,rlprof"), ("rlprof,lora", None), ("", "rlprof")],
    ids=["all", "another", "ours", "none"],
)
def test_an_engine_whose_plugins_are_listed_is_given_ours(monkeypatch, allowed, wanted):
    """VLLM_PLUGINS, if it is set, names those vLLM loads."""
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    if allowed is not None:
        monkeypatch.setenv("VLLM_PLUGINS", allowed)

    launch = engine_launch(VllmOptions(), TARGET, {"torch": {}})

    assert launch.env.get("VLLM_PLUGINS") == wanted


@pytest.mark.parametrize(
    ("tool", "wanted"), [("nsys", {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}), ("torch", {})]
)
def test_workers_under_nsys_are_spawned(monkeypatch, tool, wanted):
    """Nsys sees no process that was forked, as vLLM does where nothing speaks against it."""
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)

    assert engine_launch(VllmOptions(), TARGET, {tool: {}}).env == wanted


@pytest.mark.parametrize(
    ("tools", "who"),
    [("npu", "npu needs"), (["torch", "torch_memory"], "torch_memory needs")],
    ids=["alone", "beside torch"],
)
def test_the_native_way_refuses_tools_it_could_never_record(tools, who):
    """Before the run: vLLM's own profiler stands for the tool torch alone."""
    roles = {"rollout": {"engine": "vllm", "tool": tools}}
    config = {"steps": [1], "roles": roles, "engines": {"vllm": {"way": "native"}}}

    with pytest.raises(rlprof.ConfigError) as raised:
        rlprof.launch(config, role="rollout")

    what = f"way: native: vLLM's own profiler records torch only; {who} way: worker"
    assert (f"config: engines.vllm: {what}",) == raised.value.faults
