"""Attached again, closed again, entered out of turn: what a driver does twice."""

from __future__ import annotations

import signal
import threading
from functools import partial

import pytest

import rlprof
import rlprof_ray
from rlprof.errors import ConfigError
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import own_spans, rows, train
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


# failures.md: reattached
def test_an_actor_that_moves_up_has_its_new_rank(ray, spawn, config):
    """After rank 0 has gone, the actor that is rank 0 now is recorded as that."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]

    with rlprof_ray.Fleet(config(steps=[1, 2], roles={"actor": {"phases": ["update"]}})) as fleet:
        fleet.attach(actor=actors)
        train(ray, fleet, actors, (1,))
        wait_until(lambda: rows(fleet) == ["1/update actor 0/2 whole"])
        actors[0].die.remote()
        fleet.attach(actor=actors[1:])
        train(ray, fleet, actors[1:], (2,))

    assert rows(fleet) == ["1/update actor 0/2 whole", "2/update actor 0/1 whole"]


# failures.md: interrupted
def test_a_close_that_was_cut_goes_on_when_it_is_called_again(ray, spawn, config, monkeypatch):
    """Ctrl-C in it passes; the next call waits for what is left, and nothing is lost."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    fleet = rlprof_ray.Fleet(config(steps=[1]))
    fleet.attach(actor=actors)
    train(ray, fleet, actors, (1,))
    for actor in actors:
        actor.update.remote(1, 3)  # it leaves after that
    timer = threading.Timer(0.7, signal.raise_signal, [signal.SIGINT])
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        fleet.close()
    fleet.close()

    assert rows(fleet) == ["1/update actor 0/2 whole", "1/update actor 1/2 whole"]
    assert {one.state for one in rlprof.read(fleet.run_dir).processes} == {"ended"}


# failures.md: reattached
def test_phases_that_overlap_end_each_in_its_own_time(ray, spawn, config):
    """Members leave the phase that the driver has left, not the one they entered last."""
    actor = spawn(Trainer)

    given = config(steps=[1], mode="continuous", roles={"actor": {"ranks": "all"}})
    with rlprof_ray.Fleet(given) as fleet:
        fleet.attach(actor=[actor])
        fleet.step(1)
        alpha, beta = fleet.phase("alpha"), fleet.phase("beta")
        leave = [partial(phase.__exit__, None, None, None) for phase in (alpha, beta)]
        for edge in (alpha.__enter__, beta.__enter__, *leave):
            edge()
            ray.get(actor.update.remote(1, 0.3))

    spans = [span for span in own_spans(fleet) if span.kind == "phase"]
    took = {(span.target.role, span.name): span.seconds for span in spans}
    for name in ("alpha", "beta"):
        assert took["actor", name] == pytest.approx(took["driver", name], abs=0.2)


def test_an_actor_of_two_roles_has_the_tools_of_both(spawn, config):
    """It has one session; different tools are a fault, and so is the driver's own role."""
    actor = spawn(Trainer)
    roles = {"actor": {"phases": ["update"]}, "ref": {"tool": []}}

    with rlprof_ray.Fleet(config(roles=roles)) as fleet:
        with pytest.raises(ConfigError) as told:
            fleet.attach(actor=[actor], ref=[actor], driver=[actor])

    assert "attach: driver: is the role of the driver" in str(told.value)
    assert "roles.ref.tool: an actor of actor, too" in str(told.value)
    assert "none here, stacks there" in str(told.value)


# failures.md: reattached
def test_a_step_that_had_begun_before_says_so(ray, spawn, config):
    """Attached in the middle of a chosen step, its members are recorded from the next one on."""
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
