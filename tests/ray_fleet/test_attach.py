"""What `attach` takes, and what it says of the rest: before the run, naming the role."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

import rlprof
import rlprof_ray
from rlprof.errors import ConfigError
from rlprof_cli import main
from rlprof_ray import Replica
from tests.fakes import engines
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows
from tests.ray_fleet.test_replicas import ROLES, Server

pytestmark = pytest.mark.slow

ACTOR = {"actor": {"ranks": "all", "phases": ["update"]}}


class AsyncServer(Server):
    """An async actor; its engine belongs to its event loop, and refuses another."""

    def __init__(self):
        super().__init__()
        for name in ("start_profile", "stop_profile"):
            setattr(self.engine, name, self._on_its_loop(getattr(self.engine, name)))
        self.loop = asyncio.get_event_loop()

    def _on_its_loop(self, method):
        async def call(*args):
            if asyncio.get_running_loop() is not self.loop:
                raise RuntimeError("called on a foreign loop")
            return method(*args)

        return call

    async def generate(self, prompts):
        return self.engine.generate(prompts)


def test_what_cannot_be_attached_is_said_before_the_run(spawn, config):
    """The error names the role, what was expected and what to write."""
    actor = spawn(Trainer)
    faults = [
        ({"actor": actor}, "write actor=[...]"),
        ({"actor": [actor, Trainer]}, "attach: actor: expected actors, got <class"),
        ({"actor": 7}, "attach: actor: expected a list, got 7"),
        ({"rollout": [actor]}, "attach: rollout: say how to reach its engine"),
        ({"actor": [Replica(actor)]}, "roles.actor: names no engine"),
        ({"critic": [actor]}, "roles.critic.ranks: rank 7 does not exist among 1 rank"),
        ({"rollout": [Replica(7, via="actor:engine")]}, "via actor:engine: expected an actor"),
    ]

    with rlprof_ray.Fleet(config(roles=ROLES | {"critic": {"ranks": [0, 7]}})) as fleet:
        for given, fault in faults:
            with pytest.raises(ConfigError, match=re.escape(fault)):
                fleet.attach(**given)


def test_replicas_of_a_role_that_is_not_asked_for_are_left_out(spawn, config, trained, caplog):
    """A config that records trainers alone runs the same program, and the log says what is not."""
    replica = Replica(spawn(Server), via="actor:engine")

    with caplog.at_level(logging.WARNING, "rlprof"):
        given = config(steps=[1], roles=ACTOR)
        fleet, _ = trained(given, [spawn(Trainer)], (1,), rollout=[replica])

    assert rows(fleet) == ["1/update actor 0/1 whole"]
    assert "role 'rollout' is not in the config: its replicas are not recorded" in caplog.text


# failures.md: engine-attribute
def test_an_attribute_that_is_not_there_is_said_at_each_window(spawn, config, trained):
    """The window of its replica is failed, with the attribute and whose it should be."""
    replica = Replica(spawn(Server), via="actor:enginee")

    given = config(steps=[2], roles={"rollout": ROLES["rollout"]})
    fleet, _ = trained(given, None, servers=[], rollout=[replica])

    assert rows(fleet) == ["2/rollout rollout replica 0 failed"]
    (capture,) = rlprof.read(fleet.run_dir).captures
    assert "has no attribute 'enginee'" in " ".join(capture.notes)


def test_an_engine_of_an_event_loop_is_asked_on_it(spawn, config, trained):
    """In an async actor the loop is the actor's own."""
    servers = [spawn(AsyncServer) for _ in (0, 1)]

    given = config(steps=[2], roles={"rollout": ROLES["rollout"] | {"engine": "awaiting"}})
    replicas = [Replica(server, via="actor:engine") for server in servers]
    fleet, _ = trained(given, None, servers=servers, rollout=replicas)

    run = rlprof.read(fleet.run_dir)
    assert rows(fleet) == [f"2/rollout rollout replica {number} whole" for number in (0, 1)]
    assert {(one.target.rank, one.target.world_size) for one in run.captures} == {(0, 2), (1, 2)}


def test_an_engine_is_reached_at_its_address(config, trained):
    """Its plugin is given the address as it is, and called in the driver."""
    engines.register()
    roles = {"rollout": {"ranks": "all", "engine": "motor", "phases": ["rollout"]}}
    address = {"name": "http://127.0.0.1:8000"}

    replica = Replica(address, via="url", coordinates={"tp": 2})
    fleet, _ = trained(config(steps=[2], roles=roles), None, servers=[], rollout=[replica])

    (capture,) = rlprof.read(fleet.run_dir).captures
    (artifact,) = capture.artifacts
    assert (str(capture.target), capture.target.world_size) == ("rollout replica 0", 2)
    assert (fleet.run_dir / artifact.path).read_text() == f"{address['name']} 2/rollout"


def test_a_role_that_is_not_in_the_config_is_named_once_at_launch(config, caplog):
    """A process of it needs nothing; a misspelt name would go unseen."""
    with caplog.at_level(logging.WARNING, "rlprof"):
        with rlprof_ray.Fleet(config(steps=[1], roles=ACTOR)) as fleet:
            found = [fleet.launch("aktor", rank) for rank in (0, 1)]

    assert found == [rlprof.Launch()] * 2
    assert caplog.text.count("launch: role 'aktor' is not in the config (there: actor)") == 1


def test_a_cluster_without_a_known_run_lists_what_is_there(ray, spawn, capsys):
    """The classes of its actors, and how to name them."""
    ray.get(spawn(Trainer).__ray_ready__.remote())

    assert main(["attach", "--yes"]) == 1
    assert "Trainer" in capsys.readouterr().err
