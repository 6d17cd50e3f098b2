"""Requests to a live fleet: the driver reads them, its members record."""

import threading

import pytest

import rlprof
import rlprof_ray
from rlprof_cli import main
from rlprof_ray import Replica
from tests.core.test_on_demand import asked
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import ROLES, attached, rows, train
from tests.ray_fleet.test_replicas import Server

pytestmark = pytest.mark.slow


def follow(ray, fleet, actors, servers, *argv):
    """Run `rlprof capture` while a fleet trains on, until the command has ended."""
    fleet.session.scribe.flush()
    codes = []
    words = ["capture", str(fleet.run_dir), "--timeout", "60", *argv]
    asking = threading.Thread(target=lambda: codes.append(main(words)))
    asking.start()
    step = 1
    while asking.is_alive():
        train(ray, fleet, actors, (step := step + 1,), servers)
    asking.join()
    return codes


def test_members_record_what_the_run_is_asked(ray, spawn, config):
    """A request records exactly the ranks that it names, even if the config leaves them out."""
    actors = [spawn(Trainer, rank) for rank in range(3)]

    with attached(config(steps="none", roles={"actor": {}}), actor=actors) as fleet:
        train(ray, fleet, actors, range(2))
        answers = asked(fleet.session, ranks=(0, 2), next=2)
        train(ray, fleet, actors, range(2, 6))

    run = rlprof.read(fleet.run_dir)
    assert [(a.state, a.target.rank) for a in answers] == [("waiting", 0), ("waiting", 2)]
    assert [(a.state, a.steps) for a in run.answers] == [("served", (2, 3))] * 2
    assert [f"{step}/update actor {rank}/3 whole" for step in (2, 3) for rank in (0, 2)] == (
        rows(fleet)
    )
    assert {answers[0].id} == {capture.request for capture in run.captures}
    own = [process for process in run.processes if not process.name.endswith("-ray")]
    assert [str(process.target) for process in own] == ["actor 0/3", "actor 2/3", "driver 0/1"]


def test_a_request_may_name_another_role_and_other_options(ray, spawn, config):
    """A request may name a role that the config lacks, and other options of the run's tool."""
    actor, critic = spawn(Trainer), spawn(Trainer)

    with attached(config(steps=[1]), actor=[actor], critic=[critic]) as fleet:
        train(ray, fleet, [actor, critic], (1,))
        asked(fleet.session, role="critic", options={"stacks": {"hz": 20}})
        train(ray, fleet, [actor, critic], (2,))

    assert rows(fleet) == ["1/update actor 0/1 whole", "2/update critic 0/1 whole"]
    first, second = rlprof.read(fleet.run_dir).captures
    assert {"hz": 20} == {**second.asked} != {**first.asked}


def test_the_command_follows_replicas_that_have_recorded_before(ray, spawn, config, capsys):
    """`rlprof capture` records replicas that have recorded before, by engine and by tool."""
    servers = [spawn(Server) for _ in (0, 1)]

    with rlprof_ray.Fleet(config(steps=[1], roles={"rollout": ROLES["rollout"]})) as fleet:
        fleet.attach(rollout=[Replica(one, via="actor:engine") for one in servers])
        train(ray, fleet, None, (1,), servers)
        codes = follow(ray, fleet, None, servers, "--role", "rollout", "--tool", "stacks")

    out, err = capsys.readouterr()
    asked = [one for one in rlprof.read(fleet.run_dir).captures if one.request]
    assert codes == [0], out + err
    found = {(one.tool, one.target.replica) for one in asked}
    assert found == {(tool, replica) for tool in ("mini", "stacks") for replica in (0, 1)}


def test_the_command_records_every_role_of_the_config_in_one_step(ray, spawn, config, capsys):
    """Without a role `rlprof capture` records trainers and replicas in the same step."""
    actor, server = spawn(Trainer), spawn(Server)
    roles = {**ROLES, "rollout": {**ROLES["rollout"], "engine": "driving"}, "agent": {"tool": []}}

    with rlprof_ray.Fleet(config(steps="none", roles=roles)) as fleet:
        fleet.attach(actor=[actor], rollout=[Replica(server, via="actor:engine")])
        codes = follow(ray, fleet, [actor], [server])

    out, err = capsys.readouterr()
    found = rlprof.read(fleet.run_dir).captures
    assert codes == [0], out + err
    told = [(one.target.role, one.state) for one in found]
    assert told == [("rollout", "whole"), ("actor", "whole")]
    assert len({one.window.start_step for one in found}) == 1
