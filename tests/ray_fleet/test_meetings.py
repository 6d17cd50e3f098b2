"""Fleets that meet: in one driver, on the same actors, on one cluster."""

from __future__ import annotations

import uuid

import pytest

import rlprof
import rlprof_ray
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import train
from tests.ray_fleet.driver import NAMESPACE
from tests.ray_fleet.drivers import drive
from tests.ray_fleet.faults import LIMITS, bare, states, told

pytestmark = pytest.mark.slow

STEPS = (1, 2, 3)
WINDOWS = {f"{step}/update actor {rank}/2": "whole" for step in (2, 3) for rank in (0, 1)}


# failures.md: fleets-meet
def test_fleets_of_a_driver_follow_one_another(ray, spawn, config):
    """A second at once is refused; after the first has let the actors go, each has its run."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    runs, out = [], []

    for steps in ((1, 2), (3, 4)):
        with rlprof_ray.Fleet(config(steps=[2, 3], limits=LIMITS)) as fleet:
            with pytest.raises(rlprof.RlprofError, match="a session is open in this process"):
                rlprof_ray.Fleet(config())
            fleet.attach(actor=actors)
            out += train(ray, fleet, actors, steps)
            runs.append(fleet.run_dir)

    assert bare((0, 1), (1, 2, 3, 4)) == out
    assert [sorted(states(run)) for run in runs] == [sorted(WINDOWS)[:2], sorted(WINDOWS)[2:]]
    assert {state for run in runs for state in states(run).values()} == {"whole"}


# failures.md: fleets-meet
def test_two_drivers_on_the_same_actors_keep_apart(ray, spawn, config):
    """Who comes second is told in whose run the actors are; the first loses nothing."""
    names = [f"shared-{uuid.uuid4().hex}" for _ in range(2)]
    make = ray.remote(num_cpus=0, lifetime="detached")(Trainer)
    actors = [make.options(name=name, namespace=NAMESPACE).remote(rank)
              for rank, name in enumerate(names)]  # fmt: skip
    place = ray.get_runtime_context().gcs_address

    with rlprof_ray.Fleet(config(steps=[2, 12], limits=LIMITS)) as fleet:
        fleet.attach(actor=actors)
        out = train(ray, fleet, actors, (1, 2))
        second = drive(config(limits=LIMITS), address=place, find=names)
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
