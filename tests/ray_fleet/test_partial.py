"""Members that fail: the others go on, and the manifest names who did not."""

from __future__ import annotations

import time

import pytest

import rlprof
import rlprof_ray
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows

pytestmark = pytest.mark.slow


def notes(fleet):
    run = rlprof.read(fleet.run_dir)
    return {f"{one.window.id} {one.target}": " ".join(one.notes) for one in run.captures}


def followers(fleet):
    run = rlprof.read(fleet.run_dir)
    return len([process for process in run.processes if process.target.role == "actor"])


def test_an_actor_that_died_before_the_window_is_named(ray, spawn, config):
    """Its captures are failed and say why; the other actor's are whole."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]

    with rlprof_ray.Fleet(config()) as fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps((1, 2, 3)):
            if step == 2:
                actors[1].die.remote()
            with fleet.phase("update"):
                ray.get(actors[0].update.remote(step, 0.3))

    assert rows(fleet) == [
        "2/update actor 0/2 whole",
        "2/update actor 1/2 failed",
        "3/update actor 0/2 whole",
        "3/update actor 1/2 failed",
    ]
    assert "start: ActorDiedError" in notes(fleet)["2/update actor 1/2"]
    assert "ActorDiedError" in notes(fleet)["3/update actor 1/2"]


def test_an_actor_that_dies_in_the_window_loses_it(ray, spawn, config):
    """What was open is lost, and salvage may find what lies on disk; nobody waits for it."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]

    with rlprof_ray.Fleet(config(steps=[2])) as fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps((1, 2)):
            with fleet.phase("update"):
                ray.get(actors[0].update.remote(step, 0.1))
                if step == 2:
                    actors[1].die.remote()
                    time.sleep(1)

    assert rows(fleet) == ["2/update actor 0/2 whole", "2/update actor 1/2 lost"]
    assert "stop: ActorDiedError" in notes(fleet)["2/update actor 1/2"]


def test_an_actor_that_is_busy_holds_nobody(ray, spawn, config):
    """It is not waited for; its window opens when its queue comes to it, or is said to be late."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    limits = {"start_timeout_s": 0.5, "stop_timeout_s": 1}

    with rlprof_ray.Fleet(config(steps=[2, 3], limits=limits)) as fleet:
        fleet.attach(actor=actors)
        long = actors[1].update.remote(0, 15)
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("update"):
                ray.get(actors[0].update.remote(step, 0.1))
            if step == 2:
                time.sleep(2.5)  # past its deadlines
        done, _ = ray.wait([long], timeout=0)
        ray.get(long)

    assert not done, "the driver waited for the one that was busy"
    told = notes(fleet)
    assert "start: was not answered within start_timeout_s" in told["2/update actor 1/2"]
    assert "not started: its" in told["3/update actor 1/2"]
    assert rows(fleet)[0] == "2/update actor 0/2 whole"
    assert "3/update actor 0/2 whole" in rows(fleet)


def test_an_actor_that_was_restarted_is_recorded_again(ray, spawn, config):
    """The window after its death finds a new process, which is set up for the next one."""
    actor = spawn(Trainer, max_restarts=1)

    with rlprof_ray.Fleet(config(steps="1-5")) as fleet:
        fleet.attach(actor=[actor])
        for step in fleet.steps(range(1, 6)):
            if step == 2:
                with pytest.raises(ray.exceptions.RayActorError):
                    ray.get(actor.die.remote())
                while True:  # until it is back
                    try:
                        ray.get(actor.pid.remote())
                        break
                    except ray.exceptions.RayActorError:
                        time.sleep(0.2)
            with fleet.phase("update"):
                ray.get(actor.update.remote(step))
            while step == 2 and followers(fleet) < 2:
                time.sleep(0.2)  # it opens its session

    told = rows(fleet)
    assert "its process is a new one" in notes(fleet)["2/update actor 0/1"]
    assert told[-1] == "5/update actor 0/1 whole"
