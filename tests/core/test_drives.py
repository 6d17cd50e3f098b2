"""An engine whose own processes record themselves: its plugin carries orders there."""

from __future__ import annotations

import os

import pytest

import rlprof
from rlprof.session import _current
from rlprof_cli import main
from tests.core.test_on_demand import ask
from tests.fakes import engines, tools

pytestmark = pytest.mark.slow


@pytest.fixture(name="hive")
def _hive():
    """Register the engine `hive`."""
    rlprof.register("engine", "hive", engines.Hive)
    engines.calls.clear()


@pytest.fixture(name="hive_config")
def _hive_config(config, hive):
    """Return a function that makes a config: all replicas of one role, by `hive` and `fake`."""

    def make(**changes):
        role = changes.pop("role", {})
        roles = {"rollout": {"engine": "hive", "ranks": "all", **role}}
        return config(roles=roles, steps=[1, 2], **changes)

    return make


def record(config, cells, **given):
    """Record two steps of a hive of *cells*; return the run."""
    with rlprof.open(config, role="driver") as prof:
        prof.attach(cells, role="rollout", replica=3, **given)
        for _ in prof.steps([1, 2]):
            with prof.phase("rollout"):
                pass
    return rlprof.read(prof.run_dir)


def test_every_process_of_the_engine_records_itself(hive_config):
    """By the run's tool, in sessions of their own that close with the driver's."""
    run = record(hive_config(), [0, 1], ranks=[6, 7], world_size=8)

    found = {(c.window.id, c.tool, c.target.worker, c.target.rank) for c in run.captures}
    assert {
        (f"{step}/rollout", *who)
        for step in (1, 2)
        for who in (("hive", None, 6), ("fake", 0, 6), ("fake", 1, 7))
    } == found
    assert {"whole"} == {c.state for c in run.captures}
    assert [process.state for process in run.processes] == ["ended"] * 3


def test_workers_are_told_apart(hive_config):
    """In words, in the names of files, and by the place each said it has."""
    run = record(hive_config(), [0, 1], ranks=[6, 7], world_size=8)

    targets = {c.target for c in run.captures if c.tool == "fake"}
    paths = [a.path for c in run.captures if c.tool == "fake" for a in c.artifacts]

    assert {"rollout replica 3 worker 0", "rollout replica 3 worker 1"} == set(map(str, targets))
    assert sorted((dict(target.coordinates) for target in targets), key=str) == [
        {"cell": 0},
        {"cell": 1},
    ]
    workers = [process for process in run.processes if process.target.worker is not None]
    files = {"-".join(process.name.split("-")[-2:]) for process in workers}
    assert files == {"replica3-worker0", "replica3-worker1"}
    assert len(set(paths)) == 4
    assert all("rollout_replica_3/fake/rollout_replica3_rank" in path for path in paths)


def test_ranks_that_are_not_chosen_are_left_alone(hive_config):
    """`ranks: [7]` of a replica that holds 6 and 7."""
    run = record(hive_config(role={"ranks": [7]}), [0, 1], ranks=[6, 7], world_size=8)

    assert {7} == {c.target.rank for c in run.captures if c.tool == "fake"}


def test_without_ranks_every_process_is_recorded(hive_config):
    """Nobody has said which ranks the replica holds: its processes are numbered."""
    run = record(hive_config(), [0, 1, 2])

    assert {0, 1, 2} == {c.target.rank for c in run.captures if c.tool == "fake"}


def test_options_of_the_tools_are_checked_before_the_run(hive_config):
    """They are the engine's business only later."""
    with pytest.raises(rlprof.ConfigError, match=r"tools\.fake\.colour: unknown"):
        record(hive_config(options={"colour": "red"}), [0])


def test_a_tool_of_the_role_stands_for_the_runs(hive_config):
    """It records inside the engine, and not the process that holds it."""
    run = record(hive_config(role={"tool": "other"}), [0])

    assert {("other", 0), ("hive", None)} == {(c.tool, c.target.worker) for c in run.captures}


def test_the_engine_is_born_with_what_the_tools_need(hive_config):
    """Their Launches are merged into its own, for the rank that is to be launched."""

    class Wrapper(tools.Bare):
        @rlprof.hookimpl
        def configure(self, place):
            return rlprof.Launch(env={"WRAPPED": "1"}) if place == "launch" else None

    rlprof.register("tool", "wrapper", Wrapper)

    launch = rlprof.launch(hive_config(role={"tool": "wrapper"}), role="rollout", rank=4)

    assert dict(launch.engine_args) == {"cells_of": 4}
    assert dict(launch.env) == {"WRAPPED": "1"}


def test_an_engine_is_born_recordable_if_any_of_its_ranks_is_chosen(hive_config):
    """`ranks: [5]` chooses the replica that holds 4 and 5, and not the one before it."""

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
    with pytest.raises(rlprof.ConfigError, match="launch: ranks: expected"):
        rlprof.launch(config, role="rollout", ranks=[])


@pytest.mark.usefixtures("hive", "calls")
@pytest.mark.parametrize("command", [["check"], ["plan", "--no-estimate", "--steps", "1-1"]])
def test_who_asks_before_a_run_is_told_what_records_inside(tmp_path, capsys, command):
    """The tools of its role are not those of the process that holds the engine."""
    file = tmp_path / "profile.yaml"
    file.write_text("tool: fake\nsteps: [1]\nroles: {rollout: {engine: hive}}")

    assert main([command[0], str(file), *command[1:]]) == 0

    assert "engine hive (inside it: fake)" in capsys.readouterr().out


def test_what_fails_in_a_worker_fails_there_alone(hive_config):
    """The tool raises in one window of one worker; the other captures are whole."""
    run = record(hive_config(options={"raises_in": "start"}), [0])

    states = {c.tool: c.state for c in run.captures if c.window.start_step == 1}
    assert states == {"hive": "whole", "fake": "failed"}


def test_a_request_reaches_the_processes_with_options_of_its_own(hive_config):
    """And with its name, so that what they recorded is told as its answer."""
    config = hive_config(role={"options": {"fake": {"level": 2}}}) | {"steps": [1]}
    with rlprof.open(config, role="driver") as prof:
        prof.attach([0], role="rollout")
        steps = prof.steps(range(1, 5))
        next(steps)
        with prof.phase("rollout"):
            pass
        asked = ask(prof, role="rollout", options={"fake": {"level": 5}})
        for _ in steps:
            with prof.phase("rollout"):
                pass
    run = rlprof.read(prof.run_dir)

    inside = [c for c in run.captures if c.tool == "fake"]
    assert [(c.window.start_step, c.asked["level"], c.request) for c in inside] == [
        (1, 2, ""),
        (2, 5, asked.id),
    ]
    assert {c.state for c in run.captures} == {"whole"}


def test_a_run_that_records_nothing_by_itself_is_recorded_inside_when_asked(hive_config):
    """With `steps: none` the first order that comes is a request's."""
    with rlprof.open(hive_config() | {"steps": "none"}, role="driver") as prof:
        prof.attach([0], role="rollout")
        steps = prof.steps(range(1, 4))
        next(steps)
        asked = ask(prof, role="rollout")
        for _ in steps:
            with prof.phase("rollout"):
                pass
    run = rlprof.read(prof.run_dir)

    found = [(c.window.start_step, c.tool, c.request, c.state) for c in run.captures]
    assert sorted(found) == [(2, "fake", asked.id, "whole"), (2, "hive", asked.id, "whole")]


def test_an_order_nobody_can_obey_is_answered_so(hive_config, monkeypatch):
    """A process of the engine that opens no window says it, and does not call that recorded."""
    told = []
    real = rlprof.Order.begin
    monkeypatch.setattr(
        rlprof.Order, "begin", lambda self, member: told.append(real(self, member)) or told[-1]
    )

    def record_nothing(self, *_, **__):
        return ""

    monkeypatch.setattr("rlprof.session._track.Track.open_window", record_nothing)

    record(hive_config(), [0])

    assert told == ["its tools are not there; the log of this process says why"] * 2


def test_a_rank_that_no_engine_holds_is_a_problem(hive_config):
    """`ranks: [5]`, and what was attached holds 0: nothing was recorded, and that is why."""
    run = record(hive_config(role={"ranks": [5]}), [0], ranks=[0])

    assert run.captures == ()
    why = "5 is chosen, and no engine that was attached holds it (they hold 0)"
    assert f"driver 0/1: roles.rollout.ranks: {why}" in run.problems


def test_ranks_beyond_the_world_are_refused(hive_config):
    """Before the run, at `attach`."""
    with pytest.raises(rlprof.ConfigError, match="attach: rank 7 does not exist in a world of 4"):
        record(hive_config(), [0], ranks=[7], world_size=4)


def test_a_forked_child_forgets_the_workers_of_its_process(hive_config):
    """Their files are the parent's: the child writes nothing into them, and ends at once."""
    with rlprof.open(hive_config(), role="driver") as prof:
        prof.attach([0], role="rollout")
        (worker,) = _current.beside
        child = os.fork()
        if child == 0:
            worker.close()  # as at its exit
            os._exit(0 if worker._is_forgotten and not _current.beside else 1)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert {p.state for p in rlprof.read(prof.run_dir).processes} == {"ended"}
