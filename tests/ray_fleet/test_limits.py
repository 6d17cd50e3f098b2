"""Members share the bytes of a run equally, and their driver opens no more once all are used."""

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
    """Each has an equal part; once all have used theirs up, the driver skips its windows."""
    actors = [spawn(Trainer, rank) for rank in range(3)]

    with rlprof_ray.Fleet(config(steps=[1, 2, 3], limits={"bytes": 3})) as fleet:
        fleet.attach(actor=actors)
        train(ray, fleet, actors, (1,))
        while not all(sizes(fleet)):
            time.sleep(0.2)
        train(ray, fleet, actors, (2, 3))  # they tell the driver when the second begins

    run = rlprof.read(fleet.run_dir)
    assert {one.window.start_step for one in run.captures if one.artifacts} == {1}
    assert {(one.step, one.reason) for one in run.skipped} == {
        (3, "its share of limits.bytes, 1, is used up")
    }
    assert [one.target.rank for one in run.skipped] == [0, 1, 2]
