"""What the engine `sglang` can be asked, and what is said of the rest, before a run begins."""

from __future__ import annotations

import pytest

import rlprof

STACKS = ("iterations: needs {count: N}, because tools.torch.contents has stack: an idle "
          "scheduler writes up to two million events a second")  # fmt: skip
WRONG = {
    "an activity nobody knows": (
        {"activities": ["CPU", "gpu"]},
        "'gpu' is not one of CPU, GPU, XPU, MEM, CUDA_PROFILER",
    ),
    "no activity": (
        {"activities": []},
        "is empty, and SGLang would record nothing; leave it out for CPU and GPU",
    ),
    "stages without steps": (
        {"by_stage": True},
        (
            "by_stage needs iterations: {count: N}, the steps of each stage; without it "
            "SGLang's scheduler dies at its next prefill"
        ),
    ),
    "steps in both words": (
        {"step_start": 1, "iterations": {"count": 2}},
        "step_start and step_end are verl's names for iterations; use one or the other",
    ),
    "an end before the start": (
        {"step_start": 5, "step_end": 5},
        "step_end: 5 is not after step_start: 5; the first step is 1",
    ),
    "its own profiler, inside": (
        {"way": "worker", "by_stage": True, "iterations": {"count": 2}},
        "by_stage: SGLang's own profiler does that; leave out way: worker",
    ),
}


def faults_of(options, tool="torch", **more):
    """Return all that is said of a config with these options."""
    roles = {"rollout": {"engine": "sglang", "tool": tool}}
    config = {"steps": [1], "roles": roles, "engines": {"sglang": options}}
    config |= more
    with pytest.raises(rlprof.ConfigError) as raised:
        rlprof.launch(config, role="rollout")
    return raised.value.faults


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_is_refused_before_the_run(wrong):
    """With one sentence that says what to write instead."""
    options, why = WRONG[wrong]

    (fault,) = faults_of(options)

    assert why in fault
    assert "engines.sglang" in fault


def test_stacks_without_a_number_of_steps_are_refused():
    """By the options of the tool; in verl's words ten steps are taken, which `test_seed` holds."""
    (fault,) = faults_of({}, tools={"torch": {"contents": ["stack"]}})

    assert fault == f"config: engines.sglang: {STACKS}"


def test_the_key_of_a_server_is_not_shown():
    """What is logged or raised holds options, and no secrets."""
    from rlprof_sglang import SglangOptions

    assert "hunter2" not in repr(SglangOptions(admin_api_key="hunter2"))
