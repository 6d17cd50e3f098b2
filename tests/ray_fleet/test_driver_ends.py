"""Drivers that end in each way there is: nothing that was recorded is lost, nobody is left."""

from __future__ import annotations

import pytest

import rlprof
from rlprof_run.salvage import salvage
from tests.ray_fleet.driver import NAMESPACE
from tests.ray_fleet.drivers import drive
from tests.ray_fleet.faults import LIMITS, bare, states, told
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

STEPS = (1, 2, 3)
WINDOWS = [f"{step}/update actor {rank}/2" for step in (2, 3) for rank in (0, 1)]
CLOSED, OPEN = WINDOWS[:2], WINDOWS[2:]
"""Of a driver that ends in step 3."""


def members(run):
    """Say in what state the processes of actors are."""
    return [one.state for one in rlprof.read(run).processes if one.target.role == "actor"]


# failures.md: driver-ended
def test_a_driver_that_is_killed_leaves_no_session_open_in_detached_actors(ray, config):
    """They stop by themselves, export, and train on for whoever comes next."""
    done = drive(
        config(limits=LIMITS), address=address(ray), end="killed", where="in", detached=True
    )
    wait_until(lambda: members(done.run) == ["ended", "ended"])
    trained = [ray.get_actor(name, namespace=NAMESPACE) for name in done.names]
    following = ray.get([one.update.remote(4) for one in trained])
    for one in trained:
        ray.kill(one)

    assert done.code == -9
    assert bare((0, 1), STEPS) == done.totals
    assert bare((0, 1), (*STEPS, 4))[-1] == following
    assert dict.fromkeys(WINDOWS, "whole") == states(done.run)
    early = {name for name, words in told(done.run).items() if "its driver has ended" in words}
    assert early == set(OPEN)


# failures.md: driver-ended
def test_a_tool_of_the_thread_is_stopped_there_when_the_driver_is_gone(ray, config):
    """The actor calls itself, for a tool that cannot be stopped on another thread."""
    given = config(tool="bound", steps=[3], limits=LIMITS)

    done = drive(given, address=address(ray), end="killed", where="in", detached=True)
    wait_until(lambda: members(done.run) == ["ended", "ended"])
    for name in done.names:
        ray.kill(ray.get_actor(name, namespace=NAMESPACE))

    assert bare((0, 1), STEPS) == done.totals
    found = told(done.run)
    assert set(OPEN) == set(found)
    for words in found.values():
        assert words.startswith("whole: closed early: its driver has ended closed late: ")


# failures.md: ray-gone
def test_actors_that_ray_has_killed_are_left_to_a_salvage(config):
    """Where nothing of ours was called before; the driver's manifest says it, and how to go on."""
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
    assert {"partial"} == {found[name] for name in OPEN}
    assert "Ray was shut down in the driver before the fleet was closed" in problem
    assert f"rlprof salvage {done.run}" in problem
    assert done.closed_s < 30


# failures.md: driver-ended, ray-gone
@pytest.mark.parametrize(
    ("end", "where", "code"),
    [("raises", "in", 1), ("exits", "in", 3), ("shuts Ray down", "after", 0)],
)
def test_a_driver_that_ends_otherwise_loses_nothing(ray, config, end, where, code):
    """In a step, with `with` and without, or Ray first: all is whole, the code is the driver's."""
    place = {"address": address(ray), "where": where}

    done = drive(config(limits=LIMITS), end=end, closes=end != "exits", **place)

    assert done.code == code, done.stderr[-2000:]
    assert bare((0, 1), STEPS) == done.totals
    assert dict.fromkeys(WINDOWS, "whole") == states(done.run)
    assert members(done.run) == ["ended", "ended"]
    assert rlprof.read(done.run).problems == ()
    assert ("RuntimeError: a step has failed" in done.stderr) == (end == "raises")


def address(ray):
    """Say where the test's own Ray is."""
    return ray.get_runtime_context().gcs_address
