"""Faulty actors and replicas: training continues unchanged, and the run names each fault."""

import os
import signal
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

import rlprof
import rlprof_ray
from rlprof_ray import Replica
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import ROLES, attached
from tests.ray_fleet.faults import LIMITS, SLACK_S, Server, answers, bare, states, told
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

STEPS = (1, 2, 3)


def nothing(step, path):
    """Do nothing."""


def train(ray, given, actors, servers=(), *, live=2, before=nothing, inside=nothing):
    """Train with *live* of the actors; call *before* in each step and *inside* each update."""
    out, times = [], [time.monotonic()]
    with rlprof_ray.Fleet(given) as fleet:
        replicas = [Replica(one, via="actor:engine") for one in servers]
        fleet.attach(actor=actors, **({"rollout": replicas} if servers else {}))
        times.append(time.monotonic())
        for step in fleet.steps(STEPS):
            before(step, fleet.run_dir)
            with fleet.phase("rollout"):
                ray.get([server.generate.remote("1 + 1 =") for server in servers[:1]])
            with fleet.phase("update"):
                refs = [actor.update.remote(step) for actor in actors[:live]]
                inside(step, fleet.run_dir)
                out.append(ray.get(refs))
            times.append(time.monotonic())
    times.append(time.monotonic())
    attaching, *steps, closing = [after - began for began, after in pairwise(times)]
    whole = {name for name, state in states(fleet.run_dir).items() if state == "whole"}
    said = {"attaching": attaching, "longest": max(steps), "closing": closing, "whole": whole}
    return SimpleNamespace(path=fleet.run_dir, out=out, **said)


# failures.md: actor-gone
@pytest.mark.parametrize("when", ["before", "inside"])
def test_windows_of_a_killed_actor_fail_or_are_lost(ray, spawn, config, when):
    """Windows of an actor that is killed before or inside them fail or are lost, with a reason."""
    actors = [spawn(Trainer, rank) for rank in (0, 1, 2)]

    def kill(step, path):
        if step == 2:
            wait_until(lambda: when == "before" or "2/update actor 2/3" in told(path))
            actors[2].die.remote()
            wait_until(lambda: answers(ray, actors[2]) is False)  # Ray reports it later

    trained = train(ray, config(limits=LIMITS), actors, **{when: kill})

    assert bare((0, 1), STEPS) == trained.out
    assert trained.whole == {f"{n}/update actor {rank}/3" for n in (2, 3) for rank in (0, 1)}
    hook, state = {"before": ("start", "failed"), "inside": ("stop", "lost")}[when]
    words = told(trained.path)["2/update actor 2/3"]
    assert words.startswith(state)
    assert f"{hook}: " in words
    assert "Actor" in words
    gone = told(trained.path)["3/update actor 2/3"]
    assert gone.startswith("failed: start: not started: the actor is gone")
    run = rlprof.read(trained.path)
    assert run.state == "ended"
    assert "driver 0/1: actor 2/3: the actor is gone: Actor" in "\n".join(run.problems)


# failures.md: actor-gone
def test_an_actor_that_training_drops_frees_its_cpus(ray, config):
    """A dropped actor ends, so that a new one gets its CPUs; the run says why it is gone."""
    make = ray.remote(num_cpus=8)(Trainer).remote
    with rlprof_ray.Fleet(config(limits=LIMITS)) as fleet:
        fleet.attach(actor=[actor := make()])
        del actor
        total = ray.get((actor := make()).update.remote(1), timeout=30)
        fleet.attach(actor=[actor])
        fleet.step(2)
        with fleet.phase("update"):
            ray.get(actor.update.remote(2))

    assert total == bare((0,), (1,))[0][0]
    assert states(fleet.run_dir) == {"2/update actor 0/1": "whole"}
    words = "actor 0/1: the actor is gone: its last handle was dropped"
    assert rlprof.read(fleet.run_dir).problems[-1].endswith(words)


# failures.md: actor-busy
@pytest.mark.parametrize("fault", ["hangs in start", "hangs in stop", "dies in stop"])
def test_a_faulty_replica_delays_no_step_beyond_its_deadlines(ray, spawn, actors, config, fault):
    """A replica that hangs or dies delays a step by its deadlines at most; the other records."""
    servers = [spawn(Server), spawn(Server, fault)]

    trained = train(ray, config(roles=ROLES, limits=LIMITS), actors, servers)

    assert bare((0, 1), STEPS) == trained.out
    assert trained.longest < LIMITS["start_timeout_s"] + LIMITS["stop_timeout_s"] + SLACK_S
    assert trained.closing < 2 * LIMITS["stop_timeout_s"] + 2 * SLACK_S
    assert ray.get(servers[0].calls.remote()) == ["start", "stop"] * 2
    assert trained.whole >= {f"{n}/update actor {rank}/2" for n in (2, 3) for rank in (0, 1)}
    for step in (2, 3):
        words = told(trained.path)[f"{step}/rollout rollout replica 1"]
        assert words.partition(":")[0] in ("failed", "lost")
    hook = fault.rpartition(" ")[2]
    assert f"{hook}: " in told(trained.path)["2/rollout rollout replica 1"]


# failures.md: pending-calls
def test_an_actor_with_a_full_queue_loses_only_its_own_windows(ray, spawn, config):
    """If Ray rejects calls to an actor, its windows fail with Ray's error; others are whole."""
    full = spawn(Trainer, 1, max_pending_calls=1)

    def fill(step, _):
        if step == 2:
            full.update.remote(step, 600)

    trained = train(ray, config(limits=LIMITS), [spawn(Trainer), full], live=1, before=fill)

    assert bare((0,), STEPS) == trained.out
    assert trained.whole == {"2/update actor 0/2", "3/update actor 0/2"}
    assert "start: PendingCallsLimitExceeded" in told(trained.path)["3/update actor 1/2"]


# failures.md: actor-busy
def test_a_suspended_actor_delays_no_step_beyond_its_deadlines(ray, actors, config):
    """A suspended actor delays a step by one deadline at most, and ends its session later."""
    pid = ray.get(actors[1].pid.remote())

    def suspend(step, _):
        if step == 2:
            os.kill(pid, signal.SIGSTOP)

    try:
        trained = train(ray, config(limits=LIMITS), actors, live=1, before=suspend)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: {"ended"} == {one.state for one in rlprof.read(trained.path).processes})

    found = told(trained.path)
    assert bare((0,), STEPS) == trained.out
    assert trained.longest < LIMITS["start_timeout_s"] + SLACK_S
    assert trained.closing < 2 * LIMITS["stop_timeout_s"] + 2 * SLACK_S
    assert "not answered within" in found["2/update actor 1/2"]
    assert found["2/update actor 0/2"] == found["3/update actor 0/2"] == "whole: "
    assert "3/update actor 1/2" in found


# failures.md: actor-hangs
def test_closing_hardly_waits_for_a_hung_actor_without_exports(ray, actors, config, monkeypatch):
    """`close` waits only briefly for an actor that hangs after its exports, and reports it."""
    monkeypatch.setattr("rlprof_ray._crew._BUSY_S", 2.0)
    pid = ray.get(actors[1].pid.remote())

    def suspend(step, path):
        if step == STEPS[-1]:
            wait_until(lambda: states(path).get("1/update actor 1/2") == "whole")
            os.kill(pid, signal.SIGSTOP)

    try:
        trained = train(ray, config(steps=[1]), actors, live=1, before=suspend)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: {"ended"} == {one.state for one in rlprof.read(trained.path).processes})

    assert trained.closing < 2 + 2 * SLACK_S
    assert any("it is busy or hangs" in one for one in rlprof.read(trained.path).problems)


# failures.md: actor-gone
def test_an_actor_that_is_never_scheduled_delays_only_the_attach(ray, spawn, config):
    """An unscheduled actor delays attaching by its deadline; its windows fail with the reason."""
    actors = [spawn(Trainer), spawn(Trainer, 1, resources={"nowhere": 1})]
    patience_s = 4  # for attaching; the other actor answers within it, even on a busy machine
    ray.get(actors[0].pid.remote())

    given = config(limits=LIMITS | {"configure_timeout_s": patience_s})
    trained = train(ray, given, actors, live=1)

    assert bare((0,), STEPS) == trained.out
    assert trained.attaching < patience_s + 2 * SLACK_S
    assert trained.longest < SLACK_S
    assert trained.closing < LIMITS["stop_timeout_s"] + 2 * SLACK_S
    assert told(trained.path)["2/update actor 0/2"].startswith("whole")
    never = told(trained.path)["3/update actor 1/2"]
    assert "not started: its configure was not answered yet" in never
    assert any("actor 1/2" in one for one in rlprof.read(trained.path).problems)


class Awaited(Trainer):
    """An actor that starts, and restarts, once a file exists."""

    def __init__(self, rank, file):
        super().__init__(rank)
        wait_until(file.exists)


# failures.md: actor-gone
def test_an_actor_that_is_being_restarted_delays_no_other(ray, spawn, config, tmp_path):
    """The window of an actor fails while it restarts; afterwards its new process is recorded."""
    (file := tmp_path / "born").touch()
    actors = [spawn(Trainer), spawn(Awaited, 1, file, max_restarts=1)]
    pid = ray.get(actors[1].pid.remote())
    file.unlink()

    with attached(config(steps="1-20", limits=LIMITS), actor=actors) as fleet:
        began = time.monotonic()
        fleet.step(1)
        actors[1].die.remote()
        with fleet.phase("update"):
            first = ray.get(actors[0].update.remote(1))
        took = time.monotonic() - began
        file.touch()
        for step in range(2, 20):
            fleet.step(step)
            wait_until(lambda: answers(ray, actors[1]))
            with fleet.phase("update"):
                again = ray.get(actors[1].update.remote(step))
            name = f"{step}/update actor 1/2"
            wait_until(lambda name=name: name in told(fleet.run_dir))
            if (words := told(fleet.run_dir)[name]).partition(":")[0] != "failed":
                break
            if "its process is a new one" in words:  # then it opens its session
                own = f"manifest/actor-1-*-{ray.get(actors[1].pid.remote())}.jsonl"
                wait_until(lambda own=own: list(fleet.run_dir.glob(own)))

    assert first == bare((0,), (1,))[0][0]
    assert took < LIMITS["start_timeout_s"] + SLACK_S
    assert again == bare((1,), range(2, step + 1))[-1][0]
    assert pid != ray.get(actors[1].pid.remote())
    found = told(fleet.run_dir)
    assert found["1/update actor 1/2"].partition(":")[0] in ("failed", "lost")
    assert "its process is a new one" in " ".join(found.values())
    assert found[name].startswith("whole")


# failures.md: hook-raised
def test_failures_in_an_actor_are_counted(spawn, config, trained, capsys, monkeypatch):
    """The driver's last line counts the windows with failures, also those in actors."""
    monkeypatch.delenv("RLPROF_QUIET")
    server = Replica(spawn(Server, "raises in start"), via="actor:engine")
    trained(config(roles={"rollout": ROLES["rollout"]}), None, STEPS, [], rollout=[server])

    assert "2 windows opened, 2 with failures" in capsys.readouterr().err


# failures.md: strict
def test_in_strict_mode_the_driver_raises_the_error_of_a_replica(ray, spawn, config):
    """In strict mode the driver's next call of the fleet raises the error of a replica."""
    servers = [spawn(Server), spawn(Server, "raises in start")]
    given = config(roles={"rollout": ROLES["rollout"]}, strict=True, limits=LIMITS)

    fleet = rlprof_ray.Fleet(given)
    fleet.attach(rollout=[Replica(one, via="actor:engine") for one in servers])
    with pytest.raises(rlprof.RlprofError, match=r"^rollout replica 1: start: (?s:.*) moody"):
        for step in (1, 2, 3):
            fleet.step(step)
            with fleet.phase("rollout"):
                ray.get([server.generate.remote("1 + 1 =") for server in servers])
    fleet.close()

    assert step in (2, 3)  # it is raised once it is known
    found = told(fleet.run_dir)
    assert found["2/rollout rollout replica 0"].partition(":")[0] in ("whole", "failed")
    assert "the engine is moody" in found["2/rollout rollout replica 1"]
    assert not any(ray.get([server.is_profiling.remote() for server in servers]))
