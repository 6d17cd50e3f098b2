"""The bytes of a run are those of all members: they tell their driver, which opens no more."""

from __future__ import annotations

import time

import pytest

import rlprof
import rlprof_ray
from tests.ray_fleet.actors import Trainer

pytestmark = pytest.mark.slow


def sizes(fleet):
    captures = rlprof.read(fleet.run_dir).captures
    return [sum(artifact.size for artifact in one.artifacts) for one in captures]


def train(ray, fleet, actors, steps):
    for step in fleet.steps(steps):
        with fleet.phase("update"):
            ray.get([actor.update.remote(step) for actor in actors])


def test_members_share_the_bytes_of_a_run(ray, spawn, config):
    """None of them is over the limit by itself; together they are, a window later."""
    actors = [spawn(Trainer, rank) for rank in range(3)]
    with rlprof_ray.Fleet(config(steps=[1])) as fleet:
        fleet.attach(actor=actors)
        train(ray, fleet, actors, (1,))
    limit = sum(sizes(fleet)) * 2 // 3

    with rlprof_ray.Fleet(config(steps=[1, 2, 3], limits={"bytes": limit})) as fleet:
        fleet.attach(actor=actors)
        train(ray, fleet, actors, (1,))
        while not all(sizes(fleet)):
            time.sleep(0.2)
        time.sleep(1.5)  # what is in the manifest is added up in the same turn, or the next
        train(ray, fleet, actors, (2, 3))

    run = rlprof.read(fleet.run_dir)
    assert {one.window.start_step for one in run.captures} == {1, 2}
    assert {(one.step, one.reason) for one in run.skipped} == {
        (3, f"limits.bytes {limit:,} is reached")
    }
    assert [one.target.rank for one in run.skipped] == [0, 1, 2]
