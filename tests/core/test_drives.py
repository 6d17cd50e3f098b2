"""An engine whose own processes record themselves on orders that its plugin carries there."""

import os

import pytest

import rlprof
from rlprof.session import _current
from tests.core.steps import through, train
from tests.core.test_on_demand import ask
from tests.fakes import engines, tools

pytestmark = pytest.mark.slow


@pytest.fixture(name="hive_config")
def _hive_config(config):
    """Return a function that makes a config: all replicas of one role, with `hive` and `fake`."""
    rlprof.register("engine", "hive", engines.Hive)
    engines.calls.clear()

    def make(**changes):
        role = changes.pop("role", {})
        roles = {"rollout": {"engine": "hive", "ranks": "all", **role}}
        return config(roles=roles, steps=[1, 2], **changes)

    return make


def record(config, cells, **given):
    with rlprof.open(config, role="driver") as prof:
        prof.attach(cells, role="rollout", replica=3, **given)
        train(prof, [1, 2])
    return rlprof.read(prof.run_dir)


def test_every_process_of_the_engine_records_itself(hive_config):
    """Each process of an engine records with the run's tool as its own worker and ends."""
    run = record(hive_config(), [0, 1], ranks=[6, 7], world_size=8)

    found = {(c.window.id, c.tool, c.target.worker, c.target.rank) for c in run.captures}
    assert {
        (f"{step}/rollout", *who)
        for step in (1, 2)
        for who in (("hive", None, 6), ("fake", 0, 6), ("fake", 1, 7))
    } == found
    assert {"whole"} == {c.state for c in run.captures}
    assert [process.state for process in run.processes] == ["ended"] * 3
    inside = [c for c in run.captures if c.tool == "fake"]
    assert {"rollout replica 3 worker 0", "rollout replica 3 worker 1"} == {
        str(c.target) for c in inside
    }
    assert {dict(c.target.coordinates)["cell"] for c in inside} == {0, 1}
    assert len({artifact.path for c in inside for artifact in c.artifacts}) == 4


def test_a_tool_of_the_role_replaces_the_runs_on_the_chosen_ranks(hive_config):
    """The role's tool records inside the engine on the chosen ranks; its failure stays there."""
    role, given = {"tool": "other", "ranks": [7]}, {"other": {"raises_in": "start"}}
    run = record(hive_config(role=role, tools=given), [0, 1], ranks=[6, 7], world_size=8)

    found = {(c.tool, c.target.worker, c.state) for c in run.captures}
    assert found == {("other", 1, "failed"), ("hive", None, "whole")}
    assert {7} == {c.target.rank for c in run.captures if c.tool == "other"}


def test_tool_options_and_ranks_are_checked_before_the_run(hive_config):
    """An unknown tool option, and a rank beyond the world, raise a ConfigError at once."""
    with pytest.raises(rlprof.ConfigError, match=r"tools\.fake\.colour: unknown"):
        record(hive_config(options={"colour": "red"}), [0])
    with pytest.raises(rlprof.ConfigError, match="attach: rank 7 does not exist in a world of 4"):
        record(hive_config(), [0], ranks=[7], world_size=4)


def test_launch_prepares_an_engine_only_if_it_holds_a_chosen_rank(hive_config):
    """`rlprof.launch` prepares the replica that holds a chosen rank and no other."""

    class Wrapper(tools.Bare):
        @rlprof.hookimpl
        def configure(self, place, target):
            if place == "launch":
                return rlprof.Launch(env={"FIRST": str(target.rank)})
            return None

    rlprof.register("tool", "wrapper", Wrapper)
    config = hive_config(role={"tool": "wrapper", "ranks": [5]})

    found = [rlprof.launch(config, role="rollout", ranks=held) for held in ([2, 3], [4, 5])]

    assert [launch.env for launch in found] == [{}, {"FIRST": "4"}]
    assert dict(found[1].engine_args) == {"cells_of": 4}


def test_a_request_to_a_run_without_steps_records_inside_the_engine(hive_config):
    """A request to a run with `steps: none` records inside the engine with its own options."""
    with rlprof.open(hive_config() | {"steps": "none"}, role="driver") as prof:
        prof.attach([0], role="rollout")
        steps = prof.steps(range(1, 4))
        next(steps)
        asked = ask(prof, role="rollout", options={"fake": {"level": 5}})
        for _ in steps:
            through(prof.phase("rollout"))
    run = rlprof.read(prof.run_dir)

    found = [(c.window.start_step, c.tool, c.request, c.state) for c in run.captures]
    assert sorted(found) == [(2, "fake", asked.id, "whole"), (2, "hive", asked.id, "whole")]
    assert [c.asked["level"] for c in run.captures if c.tool == "fake"] == [5]


def test_a_rank_that_no_engine_holds_is_a_problem(hive_config):
    """A chosen rank that no attached engine holds is a problem of the run."""
    run = record(hive_config(role={"ranks": [5]}), [0], ranks=[0])

    assert run.captures == ()
    why = "5 is chosen, and no engine that was attached holds it (they hold 0)"
    assert f"driver 0/1: roles.rollout.ranks: {why}" in run.problems


def test_a_forked_child_forgets_the_workers_of_its_process(hive_config):
    """A forked child does not write into the files of its parent's workers."""
    with rlprof.open(hive_config(), role="driver") as prof:
        prof.attach([0], role="rollout")
        _, worker = _current.opened
        child = os.fork()
        if child == 0:
            worker.close()  # as at its exit
            os._exit(0 if worker._is_forgotten and not _current.opened else 1)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert {p.state for p in rlprof.read(prof.run_dir).processes} == {"ended"}
