"""What goes wrong in verl 0.9.1's profiling, as scenarios here: none of it happens.

There a step that fails leaves every profiler open; a stretch of steps records rollouts in the
first one only, and stops them again and again.
"""

from __future__ import annotations

import gzip
import json
from contextlib import suppress

import pytest

import rlprof
import rlprof_ray
from rlprof_ray import Replica
from tests.ray_fleet import test_replicas
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.faults import LIMITS, bare, states

pytestmark = pytest.mark.slow

ROLES = {
    "actor": {"ranks": "all", "phases": ["update"]},
    "rollout": {"ranks": "all", "engine": "mini", "phases": ["rollout"]},
}
WHOLE_STEPS = {"actor": {"ranks": "all"}, "rollout": {"ranks": "all", "engine": "mini"}}


class Counted(test_replicas.Server):
    """A server with a real engine, which counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []
        for name in ("start_profile", "stop_profile"):
            setattr(self.engine, name, self._counted(name, getattr(self.engine, name)))

    def _counted(self, name, method):
        def call(*args):
            self.asked.append(name)
            return method(*args)

        return call

    def calls(self):
        return self.asked


def train(ray, fleet, actors, servers, steps, *, fails_in=None):
    """Train as a fit loop does; the update of one step may fail, and is passed over."""
    out = []
    for step in fleet.steps(steps):
        with fleet.phase("rollout"):
            ray.get([server.generate.remote(["1 + 1 ="]) for server in servers])
        with suppress(ValueError):
            with fleet.phase("update"):
                out.append(ray.get([actor.update.remote(step) for actor in actors]))
                if step == fails_in:
                    raise ValueError("the loss is nan")
    return out


def attached(spawn, fleet, servers):
    """Attach two actors and *servers*; return the actors."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    fleet.attach(actor=actors, rollout=[Replica(one, via="actor:engine") for one in servers])
    return actors


# failures.md: driver-ended
def test_a_failing_step_leaves_no_profiler_open(ray, spawn, config):
    """Fact 4: its window ends with the exception, and the next step is recorded."""
    servers = [spawn(Counted)]

    with rlprof_ray.Fleet(config(roles=ROLES, limits=LIMITS)) as fleet:
        actors = attached(spawn, fleet, servers)
        out = train(ray, fleet, actors, servers, (1, 2, 3), fails_in=2)
        is_open = ray.get(servers[0].is_profiling.remote())
        assert not fleet.is_recording

    assert bare((0, 1), (1, 2, 3)) == out
    assert not is_open
    assert states(fleet.run_dir) == {
        f"{step}/{name}": "whole"
        for step in (2, 3)
        for name in ("update actor 0/2", "update actor 1/2", "rollout rollout replica 0")
    }


# failures.md: driver-ended
def test_a_stretch_of_steps_is_recorded_in_each_of_them(ray, spawn, config):
    """Fact 6: rollouts are in every step, and every start has one stop."""
    servers = [spawn(Counted)]
    given = config(roles=WHOLE_STEPS, mode="continuous", steps="2-4", limits=LIMITS)

    with rlprof_ray.Fleet(given) as fleet:
        actors = attached(spawn, fleet, servers)
        out = train(ray, fleet, actors, servers, range(1, 6))
        calls = ray.get(servers[0].calls.remote())

    run = rlprof.read(fleet.run_dir)
    rollouts = [one for one in run.captures if one.target.role == "rollout"]
    assert bare((0, 1), range(1, 6)) == out
    assert calls == ["start_profile", "stop_profile"] * 3
    assert [one.state for one in run.captures] == ["whole"] * 9
    assert len(rollouts) == 3
    for one in rollouts:  # each is one iteration at least
        assert "iteration" in {event["name"] for event in events(run, one)}
    assert run.problems == ()


def events(run, capture):
    """Read the events of a capture's trace."""
    (artifact,) = capture.artifacts
    with gzip.open(run.path / artifact.path, "rt") as file:
        return json.load(file)["traceEvents"]
