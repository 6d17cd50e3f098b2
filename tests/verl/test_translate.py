"""Configs that are made of verl's keys."""

from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from rlprof.errors import ConfigError
from rlprof_verl import files
from rlprof_verl._translate import checked, translate
from tests.cases import cases

COMPOSED = str(Path(__file__).with_name("composed.yaml"))
ACTOR = "actor_rollout_ref.actor.profiler"
ROLLOUT = "actor_rollout_ref.rollout.profiler"
OWN = "global_profiler.global_tool_config.rlprof"
TRAINERS = (f"{ACTOR}.enable=true", f"{ROLLOUT}.enable=false")
SPANS = {"ranks": "all", "tool": []}


def translated(*overrides):
    return translate(files.read(COMPOSED, ["global_profiler.tool=rlprof", *overrides]))


def faults(*overrides):
    """Return the faults of the config, each without its source."""
    with pytest.raises(ConfigError) as caught:
        checked(translated(*overrides))
    return [fault.removeprefix("verl: ") for fault in caught.value.faults]


def test_the_tool_alone_keeps_times():
    """Without an enabled role, workers and agents keep spans, and no window is recorded."""
    config, uses = checked(translated())

    assert (config.tool, config.steps.as_data()) == ((), "none")
    assert {name: role.tool for name, role in config.roles.items()} == {"actor": (), "agent": ()}
    assert uses == {"actor": (), "agent": ()}


def test_three_keys_record_workers_and_replicas():
    """Three keys record workers and replicas; rollouts inherit the settings of the actor."""
    found = translated(
        "global_profiler.steps=[2,5]",
        f"{ACTOR}.enable=true",
        f"{ACTOR}.tool_config.torch.discrete=true",
    )

    assert found.config == {
        "run_dir": "outputs/profile", "tool": "torch", "steps": [2, 5], "mode": "discrete",
        "join_steps": False,
        "roles": {
            "actor": {
                "ranks": [0], "phases": ["old_log_prob", "ref", "update_actor", "update_weights"],
            },
            "agent": SPANS,
            "rollout": {"ranks": [0], "engine": "vllm", "phases": ["gen"]},
        },
    }  # fmt: skip
    assert checked(found)[0].roles["actor"].ranks == (0,)


# As verl: all phases of a step share one file, and steps in a row; rollouts are recorded.
STEPS = {"mode": "continuous", "join_steps": True, "roles.actor": {"ranks": "all"},
         "roles.rollout": {"ranks": "all", "engine": "vllm"}}  # fmt: skip
IN_A_ROW = "global_profiler.profile_continuous_steps=true"
MEMORY = {"torch_memory": {"max_entries": 100000}}


@cases(
    "overrides, expected",
    ([f"{ACTOR}.all_ranks=true", IN_A_ROW], STEPS),
    ([f"{ACTOR}.ranks=all", IN_A_ROW], STEPS),
    ([f"+{OWN}.tool=[torch,torch_memory]", f"{ACTOR}.tool_config.torch.contents=[cpu,stack]",
      "critic.profiler.enable=true", "critic.profiler.ranks=[1,3]",
      f"{ROLLOUT}.tool_config.torch.profile_token_end=9"],
     {"roles.actor.options": {"torch": {"contents": ["cpu", "stack"]}} | MEMORY,
      "roles.critic": {"ranks": [1, 3], "options": MEMORY},
      "roles.rollout.options.vllm": {"iterations": {"skip": 0, "count": 9}}}),
    ([f"{ACTOR}.tool_config.torch.contents=[cpu]", f"{ACTOR}.tool_config.torch.discrete=true",
      f"+{OWN}.roles.rollout.tool=[torch_memory]"],
     {"mode": "discrete", "roles.actor.options": {"torch": {"contents": ["cpu"]}},
      "roles.rollout.options": MEMORY}),
    ([f"+{OWN}.steps={{every: 100}}", f"+{OWN}.limits.bytes=2GB", f"+{OWN}.roles.actor.ranks=all"],
     {"steps": {"every": 100}, "limits": {"bytes": "2GB"}, "roles.actor.ranks": "all"}),
    ids=["all_ranks", "ranks", "options of a role's tools", "a role with another tool",
         "own keys over those of verl"],
)  # fmt: skip
def test_keys_of_verl_become_those_of_rlprof(overrides, expected):
    """Keys of verl become keys of rlprof, for a role those of its tools; own keys come first."""
    config = translated(f"{ACTOR}.enable=true", *overrides).config

    assert {path: reduce(getitem, path.split("."), config) for path in expected} == expected


def test_where_replicas_generate_at_any_time_a_window_is_a_step():
    """In verl's async modes a window is a whole step, even if `discrete` is set."""
    found = translated(
        "trainer.v1.trainer_mode=colocate_async", f"{ACTOR}.enable=true",
        f"{ACTOR}.tool_config.torch.discrete=true",
    )  # fmt: skip

    assert found.config["mode"] == "continuous"
    assert "trainer.v1.trainer_mode" in found.notes[0]


@cases(
    "overrides, key",
    (["global_profiler.steps=soon"], "global_profiler.steps"),
    (["global_profiler.save_path=~/runs"], "global_profiler.save_path"),
    ([*TRAINERS, f"{ACTOR}.ranks=[8]"], f"{ACTOR}.ranks"),
    ([f"{ROLLOUT}.enable=false", f"{ACTOR}.enable=tru"], f"{ACTOR}.enable"),
    ([*TRAINERS, f"{ACTOR}.tool_config.torch.contents=[gpu]"],
     f"{ACTOR}.tool_config.torch.contents"),
    ([*TRAINERS, f"+{OWN}.limit=1"], f"{OWN}.limit"),
    ([f"{ACTOR}.enable=true", f"+{OWN}.tool=nsys"], f"{OWN}.roles.rollout.tool"),
    ([f"{ROLLOUT}.enable=true", "actor_rollout_ref.rollout.name=trtllm"],
     "actor_rollout_ref.rollout.name"),
    ([*TRAINERS, f"{ACTOR}.tool_config.torch.discrete=true",
      "global_profiler.profile_continuous_steps=true"],
     f"{ACTOR}.tool_config.torch.discrete"),
)  # fmt: skip
def test_a_fault_names_the_key_of_verl(overrides, key):
    """A fault of the config names the key of verl that caused it."""
    told = faults(*overrides)

    assert [one.partition(": ")[0].partition("[")[0] for one in told] == [key]
