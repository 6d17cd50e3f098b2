"""Rollout replicas, reached in every supported way, and the other arguments of `attach`."""

import asyncio
import logging
import re
from contextlib import suppress

import pytest

import rlprof
import rlprof_ray
from rlprof.errors import ConfigError
from rlprof_ray import Replica
from tests.fakes import engines
from tests.ray_fleet import faults
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import ACTOR, ROLES, rows
from tests.ray_fleet.faults import LIMITS, bare, states

pytestmark = pytest.mark.slow


class Server(faults.Server):
    """An actor that keeps an engine, as verl's servers do."""

    def __init__(self):
        from mini_engine import Engine

        self.engine = Engine(profiler=True)

    def generate(self, prompts):
        return self.engine.generate(prompts)


def test_replicas_in_actors_are_recorded_with_the_trainers(spawn, actors, config, trained):
    """One run has whole windows of trainers and of engines in plain and threaded actors."""
    servers = [spawn(Server, max_concurrency=calls) for calls in (1, 3)]

    replicas = [Replica(one, via="actor:engine", coordinates={"tp": 2}) for one in servers]
    given = config(steps=[2], roles=ROLES)
    fleet, _ = trained(given, actors, servers=servers, rollout=replicas)

    run = rlprof.read(fleet.run_dir)
    names = ("rollout rollout replica 0", "rollout rollout replica 1")
    names += ("update actor 0/2", "update actor 1/2")
    assert rows(fleet) == [f"2/{name} whole" for name in names]
    assert [one.target.rank for one in run.captures[:2]] == [0, 2]
    assert run.problems == ()


def test_a_failing_step_leaves_no_profiler_open(ray, spawn, config):
    """A phase that raises closes its window on all members, and the next step is recorded."""
    actors, server = [spawn(Trainer, rank) for rank in (0, 1)], spawn(Server)
    out = []

    with rlprof_ray.Fleet(config(roles=ROLES, limits=LIMITS)) as fleet:
        fleet.attach(actor=actors, rollout=[Replica(server, via="actor:engine")])
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("rollout"):
                ray.get(server.generate.remote(["1 + 1 ="]))
            with suppress(ValueError), fleet.phase("update"):
                out.append(ray.get([actor.update.remote(step) for actor in actors]))
                if step == 2:
                    raise ValueError("the loss is nan")
        is_open = ray.get(server.is_profiling.remote())
        assert not fleet.is_recording

    assert bare((0, 1), (1, 2, 3)) == out
    assert not is_open
    names = ("update actor 0/2", "update actor 1/2", "rollout rollout replica 0")
    assert states(fleet.run_dir) == {f"{step}/{name}": "whole" for step in (2, 3) for name in names}


def test_ranks_are_global_and_choose_replicas(spawn, config, trained):
    """With two GPUs for each replica, ranks 2 and 5 choose the second and the third replica."""
    rollout = {"ranks": [2, 5], "engine": "mini", "phases": ["rollout"]}
    replicas = [
        Replica(spawn(faults.Server), "actor:engine", coordinates={"tp": 2}) for _ in range(3)
    ]

    given = config(steps=[1], roles={"rollout": rollout})
    fleet, _ = trained(given, None, (1,), [], rollout=replicas)

    assert [one.target.replica for one in rlprof.read(fleet.run_dir).captures] == [1, 2]


def test_each_replica_is_launched_with_a_folder_of_its_own(tmp_path):
    """The launch of each rank names its own folder, so that vLLM's traces do not collide."""
    given = {"run_dir": str(tmp_path), "tool": "torch", "steps": [1],
             "roles": {"rollout": {"ranks": "all", "engine": "vllm"}}}  # fmt: skip

    with rlprof_ray.Fleet(given) as fleet:
        found = [fleet.launch("rollout", rank).engine_args["profiler_config"] for rank in (0, 1)]

    assert [one["torch_profiler_dir"].rpartition("/")[2] for one in found] == [
        "rollout_0", "rollout_1",
    ]  # fmt: skip


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


# failures.md: ray-client
def test_attach_refuses_what_it_cannot_record(spawn, config):
    """`attach` refuses wrong members with an error that names the role and the fault."""
    actor = spawn(Trainer)
    faults = [
        ({"actor": actor}, "write actor=[...]"),
        ({"actor": [actor, Trainer]}, "attach: actor: expected actors, got <class"),
        ({"actor": 7}, "attach: actor: expected a list, got 7"),
        ({"actor": [type("ClientActorHandle", (), {})()]}, "actor: Ray Client is not supported"),
        ({"actor": [actor, actor]}, "attach: actor: names an actor twice"),
        ({"rollout": [actor]}, "attach: rollout: say how to reach its engine"),
        ({"actor": [Replica(actor)]}, "roles.actor: names no engine"),
        ({"rollout": [Replica(7, via="actor:engine")]}, "via actor:engine: expected an actor"),
        ({"driver": [actor]}, "attach: driver: is the role of the driver"),
        # It has one session, so both roles must have the same tools.
        ({"actor": [actor], "ref": [actor]}, "for both roles (ref: none; actor: stacks)"),
    ]

    roles = ROLES | {"ref": {"tool": []}}
    with rlprof_ray.Fleet(config(roles=roles)) as fleet:
        for given, fault in faults:
            with pytest.raises(ConfigError, match=re.escape(fault)):
                fleet.attach(**given)
    (idle := rlprof_ray.Fleet(config())).close()
    assert rlprof.read(fleet.run_dir).problems == ()
    assert "no actor was attached" in rlprof.read(idle.run_dir).problems[-1]


def test_missing_roles_and_ranks_are_left_out_with_a_warning(spawn, config, trained, caplog):
    """Missing ranks and roles are left out with a warning, and a likely typo is named once."""
    replica = Replica(spawn(Server), via="actor:engine")
    larger = config(steps=[1], roles={"actor": ACTOR | {"ranks": [0, 7]}})

    with caplog.at_level(logging.WARNING, "rlprof"):
        fleet, _ = trained(larger, [spawn(Trainer)], (1,), rollout=[replica])
        found = [fleet.launch("aktor", rank) for rank in (0, 1)]

    assert rows(fleet) == ["1/update actor 0/1 whole"]
    assert "roles.actor.ranks: rank 7 does not exist in a world of 1" in caplog.text
    assert "role 'rollout' is not in the config: its replicas are not recorded" in caplog.text
    assert found == [rlprof.Launch()] * 2
    assert caplog.text.count("(there: actor); did you mean 'actor'?") == 1


# failures.md: engine-attribute
def test_a_missing_engine_attribute_fails_the_window(spawn, config, trained):
    """If an actor lacks the engine's attribute, its window fails and names the attribute."""
    replica = Replica(spawn(Server), via="actor:enginee")

    given = config(steps=[2], roles={"rollout": ROLES["rollout"]})
    fleet, _ = trained(given, None, servers=[], rollout=[replica])

    assert rows(fleet) == ["2/rollout rollout replica 0 failed"]
    (capture,) = rlprof.read(fleet.run_dir).captures
    assert "has no attribute 'enginee'" in " ".join(capture.notes)


def test_an_engine_in_an_async_actor_is_called_on_its_loop(spawn, config, trained):
    """An engine that belongs to the event loop of its actor is called on that loop."""
    servers = [spawn(AsyncServer) for _ in (0, 1)]

    given = config(steps=[2], roles={"rollout": ROLES["rollout"] | {"engine": "awaiting"}})
    replicas = [Replica(server, via="actor:engine") for server in servers]
    fleet, _ = trained(given, None, servers=servers, rollout=replicas)

    run = rlprof.read(fleet.run_dir)
    assert rows(fleet) == [f"2/rollout rollout replica {number} whole" for number in (0, 1)]
    assert {(one.target.rank, one.target.world_size) for one in run.captures} == {(0, 2), (1, 2)}


def test_an_engine_is_reached_at_its_address(config, trained):
    """The plugin of an engine with a URL is called in the driver and gets the address unchanged."""
    engines.register()
    roles = {"rollout": {"ranks": "all", "engine": "motor", "phases": ["rollout"]}}
    address = {"name": "http://127.0.0.1:8000"}

    replica = Replica(address, via="url", coordinates={"tp": 2})
    fleet, _ = trained(config(steps=[2], roles=roles), None, servers=[], rollout=[replica])

    (capture,) = rlprof.read(fleet.run_dir).captures
    (artifact,) = capture.artifacts
    assert (str(capture.target), capture.target.world_size) == ("rollout replica 0", 2)
    assert (fleet.run_dir / artifact.path).read_text() == f"{address['name']} 2/rollout"
