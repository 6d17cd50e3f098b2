"""Drivers that end in every possible way, meet, or repeat a call: no capture is lost."""

import signal
import threading
import uuid
from functools import partial

import pytest

import rlprof
import rlprof_ray
from rlprof_run.salvage import salvage
from tests.cases import cases
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import attached, own_spans, rows, train
from tests.ray_fleet.driver import NAMESPACE
from tests.ray_fleet.drivers import drive
from tests.ray_fleet.faults import LIMITS, bare, states, told
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

STEPS = (1, 2, 3)
WINDOWS = [f"{step}/update actor {rank}/2" for step in (2, 3) for rank in (0, 1)]
CLOSED, OPEN = WINDOWS[:2], WINDOWS[2:]
"""The windows that are closed and open when a driver ends in step 3."""


def members(run):
    return [one.state for one in rlprof.read(run).processes if one.target.role == "actor"]


# failures.md: driver-ended
@pytest.mark.parametrize(("tool", "late"), [("stacks", ""), ("bound", " closed late: ")])
def test_a_killed_driver_leaves_no_session_open_in_detached_actors(ray, config, tool, late):
    """Detached actors of a killed driver close and export their windows, and train on."""
    given = config(tool=tool, limits=LIMITS)

    done = drive(given, address=address(ray), end="killed", where="in", detached=True)
    wait_until(lambda: members(done.run) == ["ended", "ended"])
    trained = [ray.get_actor(name, namespace=NAMESPACE) for name in done.names]
    following = ray.get([one.update.remote(4) for one in trained])
    for one in trained:
        ray.kill(one)

    assert done.code == -9
    assert bare((0, 1), STEPS) == done.totals
    assert bare((0, 1), (*STEPS, 4))[-1] == following
    found = told(done.run)
    assert dict.fromkeys(WINDOWS, "whole") == states(done.run)
    assert {name for name, words in found.items() if "its driver has ended" in words} == set(OPEN)
    for name in OPEN:
        assert found[name].startswith(f"whole: closed early: its driver has ended{late}")


# failures.md: ray-gone
def test_actors_that_ray_has_killed_are_left_to_a_salvage(config):
    """If Ray is shut down first, the run names the salvage, which recovers the captures."""
    how = "shuts Ray down by another name"

    done = drive(config(limits=LIMITS), address="local", end=how, where="in")
    wait_until(lambda: "running" not in members(done.run))
    list(salvage(rlprof.read(done.run), timeout_s=60))

    found = states(done.run)
    (problem,) = rlprof.read(done.run).problems
    assert done.code == 0, done.stderr[-2000:]
    assert bare((0, 1), STEPS) == done.totals
    assert dict.fromkeys(CLOSED, "whole").items() <= found.items()
    assert set(WINDOWS) == set(found)
    assert {found[name] for name in OPEN} <= {"partial", "whole"}  # whole: Ray killed it late
    assert "Ray was shut down in the driver before the fleet was closed" in problem
    assert f"rlprof salvage {done.run}" in problem
    assert done.closed_s < 30


# failures.md: driver-ended, ray-gone
@cases("end, where, code", ("raises", "in", 1), ("exits", "in", 3), ("shuts Ray down", "after", 0))
def test_a_driver_that_ends_otherwise_loses_nothing(ray, config, end, where, code):
    """A driver that raises, exits or shuts Ray down loses no capture and keeps its exit code."""
    place = {"address": address(ray), "where": where}

    done = drive(config(limits=LIMITS), end=end, closes=end != "exits", **place)

    assert done.code == code, done.stderr[-2000:]
    assert bare((0, 1), STEPS) == done.totals
    assert dict.fromkeys(WINDOWS, "whole") == states(done.run)
    assert members(done.run) == ["ended", "ended"]
    assert rlprof.read(done.run).problems == ()
    assert ("RuntimeError: a step has failed" in done.stderr) == (end == "raises")


def address(ray):
    return ray.get_runtime_context().gcs_address


# failures.md: fleets-meet
def test_fleets_of_a_driver_follow_one_another(ray, actors, config):
    """A fleet follows one that training left open when it failed; two in a `with` are refused."""
    left, runs, out = [], [], []

    for steps in ((1, 2), (3, 4)):
        left.append(rlprof_ray.Fleet(config()))
        left[-1].attach(actor=actors)
        with rlprof_ray.Fleet(config(steps=[2, 3], limits=LIMITS)) as fleet:
            with pytest.raises(rlprof.RlprofError, match="a session is open in this process"):
                rlprof_ray.Fleet(config())
            fleet.attach(actor=actors)
            out += train(ray, fleet, actors, steps)
            runs.append(fleet.run_dir)

    assert bare((0, 1), (1, 2, 3, 4)) == out
    assert {rlprof.read(one.run_dir).state for one in left} == {"ended"}
    assert [sorted(states(run)) for run in runs] == [sorted(WINDOWS)[:2], sorted(WINDOWS)[2:]]
    assert {state for run in runs for state in states(run).values()} == {"whole"}


# failures.md: fleets-meet
def test_two_drivers_on_the_same_actors_keep_apart(ray, spawn, config):
    """The windows of the second driver fail and name the run of the first, which loses none."""
    names = [f"shared-{uuid.uuid4().hex}" for _ in range(2)]
    make = ray.remote(num_cpus=0, lifetime="detached")(Trainer)
    actors = [make.options(name=name, namespace=NAMESPACE).remote(rank)
              for rank, name in enumerate(names)]  # fmt: skip

    with attached(config(steps=[2, 12], limits=LIMITS), actor=actors) as fleet:
        out = train(ray, fleet, actors, (1, 2))
        second = drive(config(limits=LIMITS), address=address(ray), find=names)
        out += train(ray, fleet, actors, (11, 12))
    for actor in actors:
        ray.kill(actor)

    assert bare((0, 1), (1, 2, 1, 2, 3, 11, 12)) == out[:2] + second.totals + out[2:]
    assert states(fleet.run_dir) == {
        f"{step}/update actor {rank}/2": "whole" for step in (2, 12) for rank in (0, 1)
    }
    found = told(second.run)
    assert set(found) == set(WINDOWS)
    for words in found.values():
        assert words.startswith("failed: start: it is recorded by another fleet")
        assert str(fleet.run_dir) in words
    assert second.code == 0
    assert 0 <= second.closed_s < 20


# failures.md: reattached
def test_an_actor_that_moves_up_has_its_new_rank(ray, actors, config):
    """An actor that is attached again as rank 0, after rank 0 has died, is recorded as rank 0."""
    with rlprof_ray.Fleet(config(steps=[1, 2], roles={"actor": {"phases": ["update"]}})) as fleet:
        fleet.attach(actor=actors)
        train(ray, fleet, actors, (1,))
        wait_until(lambda: rows(fleet) == ["1/update actor 0/2 whole"])
        actors[0].die.remote()
        fleet.attach(actor=actors[1:])
        train(ray, fleet, actors[1:], (2,))

    assert rows(fleet) == ["1/update actor 0/2 whole", "2/update actor 0/1 whole"]


# failures.md: interrupted
def test_an_interrupted_close_continues_when_called_again(ray, actors, config, monkeypatch):
    """Ctrl-C interrupts `close`; a second `close` waits for the rest, and all windows are whole."""
    fleet = rlprof_ray.Fleet(config(steps=[1]))
    fleet.attach(actor=actors)
    train(ray, fleet, actors, (1,))
    for actor in actors:
        actor.update.remote(1, 3)  # each actor leaves its session after this
    timer = threading.Timer(0.7, signal.raise_signal, [signal.SIGINT])
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        fleet.close()
    fleet.close()

    assert rows(fleet) == ["1/update actor 0/2 whole", "1/update actor 1/2 whole"]
    assert {one.state for one in rlprof.read(fleet.run_dir).processes} == {"ended"}


# failures.md: reattached
def test_phases_that_overlap_end_each_in_its_own_time(ray, spawn, config):
    """Of two overlapping phases, members leave the one that the driver leaves first."""
    actor = spawn(Trainer)

    given = config(steps=[1], mode="continuous", roles={"actor": {"ranks": "all"}})
    with attached(given, actor=[actor]) as fleet:
        fleet.step(1)
        alpha, beta = fleet.phase("alpha"), fleet.phase("beta")
        leave = [partial(phase.__exit__, None, None, None) for phase in (alpha, beta)]
        for edge in (alpha.__enter__, beta.__enter__, *leave):
            edge()
            ray.get(actor.update.remote(1))

    own = [one for one in own_spans(fleet) if (one.kind, one.target.role) == ("phase", "actor")]
    assert [one.name for one in sorted(own, key=lambda one: one.end_ns)] == ["alpha", "beta"]


# failures.md: reattached
def test_a_step_that_began_before_the_attach_is_skipped(ray, spawn, config):
    """A member that is attached within a chosen step skips that step, with the reason."""
    actor = spawn(Trainer)

    with rlprof_ray.Fleet(config(steps=[1, 2])) as fleet:
        fleet.step(1)
        fleet.attach(actor=[actor])
        with fleet.phase("update"):
            ray.get(actor.update.remote(1))
        train(ray, fleet, [actor], (2,))

    (skipped,) = rlprof.read(fleet.run_dir).skipped
    assert (skipped.step, skipped.reason) == (1, "it was attached after the step had begun")
    assert rows(fleet) == ["2/update actor 0/1 whole"]
