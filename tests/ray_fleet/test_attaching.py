"""`rlprof attach` on live runs that were started without rlprof, on real Ray."""

import importlib.util
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_cli import main
from rlprof_ray._calls import Call
from rlprof_ray._connect import _check_alone, _check_versions, _send_token
from rlprof_ray._member import aside
from rlprof_ray.attaching import command, edges
from rlprof_ray.attaching.actors import Actor
from rlprof_ray.attaching.found import Member
from rlprof_ray.attaching.frameworks import Kind
from rlprof_ray.attaching.look import look_at
from rlprof_ray.attaching.record import _numbers, _wait_for_exports, config_of
from rlprof_report import analyse
from tests.ray_fleet.actors import Run, Trainer, WorkerDict, vLLMHttpServer
from tests.ray_fleet.conftest import attached, rows
from tests.ray_fleet.drivers import environment
from tests.waiting import python, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _log(monkeypatch):
    """Keep the log level: the command would set it to errors only."""
    monkeypatch.setattr(logging.getLogger("rlprof"), "setLevel", lambda _: None)


@pytest.fixture(name="run", scope="module")
def _run(ray):
    """Start a run of two training workers, as verl names them, and a rollout server."""
    make = ray.remote(num_cpus=0)(WorkerDict).options
    workers = [make(name=f"ab12WorkerDict_0:{rank}").remote(rank) for rank in (0, 1)]
    actors = [*workers, ray.remote(num_cpus=0)(vLLMHttpServer).remote()]
    ray.get([actor.__ray_ready__.remote() for actor in actors])
    with Run(ray, workers, actors[2:]) as run:
        yield run
    for actor in actors:
        ray.kill(actor)


def shell(ray, tmp_path, *more, tool="stacks"):
    """Start the command as a shell on a node does."""
    address = ray.get_runtime_context().gcs_address
    return subprocess.Popen(
        [sys.executable, "-m", "rlprof", "attach", "--address", address, "--tool", tool,
         "--run-dir", str(tmp_path / "runs"), "--yes", *more],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


class Learner(Trainer):
    """An actor of a class that no other test uses."""


def followed(actor):
    from rlprof_ray import _inside

    return list(_inside._followers)


def test_a_run_without_rlprof_is_recorded_and_released(ray, run, tmp_path):
    """`attach` records workers and server in the same steps; the config may change its limits."""
    config = tmp_path / "profile.yaml"
    config.write_text("tool: stacks\nroles: {actor: {}}\nlimits: {stop_timeout_s: 77}\n")
    more = ("--steps", "2", "--config", str(config))
    out, err = shell(ray, tmp_path, *more).communicate(timeout=120)
    assert out, err
    left = ray.get([aside(one, followed) for one in (*run.workers, *run.servers)])

    (folder,) = (tmp_path / "runs").iterdir()
    found = rlprof.read(folder)
    limits = found.config["limits"]
    assert (limits["start_timeout_s"], limits["stop_timeout_s"]) == (30, 77)
    steps = sorted({one.window.start_step for one in found.captures})
    assert f"6 of 6 captures are whole; see them with:\n  rlprof ls {folder}\n" in out
    assert {(str(one.target), one.tool, one.state) for one in found.captures} == {
        ("actor 0/2", "stacks", "whole"),
        ("actor 1/2", "stacks", "whole"),
        ("rollout replica 0", "mini_engine", "whole"),
    }
    assert len(found.captures) == 6
    assert steps == [steps[0], steps[0] + 1]
    phases = {one.name for one in found.spans() if one.kind == "phase"}
    # Not `generate`: a busy host may open its windows only when that call is over.
    assert phases >= {"actor_rollout_update_actor", "set_global_steps"}
    assert found.problems == ()
    assert left == [[]] * 3
    assert run.is_as_bare()


TRAINING = """
import ray, sys
ray.init("local", num_cpus=1)

@ray.remote
class WorkerDict:
    pass

worker = WorkerDict.options(name="ab12WorkerDict_0:0").remote()
ray.get(worker.__ray_ready__.remote())
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


def test_the_token_of_a_cluster_is_sent(tmp_path):
    """`attach` sends the token that Ray 2.60 and newer keep in the user's home folder."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    env |= {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", TRAINING], env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as training:  # fmt: skip
        lines = iter(training.stdout.readline, "")
        address = next(line.strip() for line in lines if line[0].isdecimal())
        done = python("-m", "rlprof", "attach", "--address", address, env=env)
        training.communicate()

    assert "verl       actor  ab12WorkerDict_0:0" in done.stdout
    assert "there is no terminal to ask; add --yes" in done.stderr


def test_without_a_token_ray_keeps_its_mode(tmp_path, monkeypatch):
    """Without a token RAY_AUTH_MODE stays unset; in the mode `token` Ray would not start."""
    monkeypatch.setattr(os, "environ", {"RAY_AUTH_TOKEN_PATH": str(tmp_path / "none")})

    _send_token()

    assert "RAY_AUTH_MODE" not in os.environ


def test_several_clusters_or_another_release_are_named(ray, monkeypatch):
    """`attach` refuses a host with two clusters, or a cluster of another Ray, with the remedy."""
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", lambda: {"b:2", "a:1"})
    utils = ray._private.utils
    with pytest.raises(rlprof.RlprofError, match="name one: --address a:1 or b:2"):
        _check_alone("attach")
    for python_there, remedy in (
        (utils.compute_version_info()[1], "ray==2[.]1[.]0, or run"),
        ("3.1.1", "; run"),
    ):
        metadata = {"ray_version": "2.1.0", "python_version": python_there}
        with pytest.raises(RuntimeError) as refused:
            utils.check_version_info(metadata, "here")
        with pytest.raises(rlprof.RlprofError, match=f"{remedy} this command in the environment"):
            _check_versions(str(refused.value), "attach")


def test_steps_are_watched_without_a_tool(ray, run, tmp_path):
    """With `--tool none` no window opens, and the recorded calls are enough for `rlprof why`."""
    asked = shell(ray, tmp_path, "--steps", "4", tool="none")
    out, err = asked.communicate(timeout=120)

    assert asked.returncode == 0, err
    (folder,) = (tmp_path / "runs").iterdir()
    watched = rlprof.read(folder)
    found = analyse(watched)
    assert watched.is_guest
    assert watched.captures == ()
    assert f"ask why steps are slow:\n  rlprof why {folder}\n" in out
    assert len(found.clean.steps) >= 2
    assert {one.name for one in found.phases} >= {"actor_rollout_update_actor", "generate"}
    assert run.is_as_bare()


def test_steps_that_end_between_two_looks_keep_their_numbers(monkeypatch):
    """A step that ends between two reports of Ray has no window, and the command reports it."""
    reports = iter([["fit"], ["send"], ["fit", "send", "fit", "send"], ["send"]])

    class Reported:
        def news(self, _):
            return [Call("w", f"Trainer.{name}", 0, 1, "a", 1, "n") for name in next(reports)]

    monkeypatch.setattr(edges, "Record", Reported)
    actor = Actor("a", "", "Trainer", "host", 1, 0, None)
    calls = edges.Calls(Member(actor, Kind("yours", "Trainer", "actor"), None, None), "send")
    said = []

    assert list(_numbers(calls, 2, 60, said.append)) == [1, 3]

    assert len(said) == 1
    assert "1 to 2" in said[0]


def test_attach_waits_for_exports_before_it_releases_the_actors(monkeypatch):
    """`attach` waits, with one message, until no capture is exporting."""
    states, said = iter(["exporting", "whole"]), []
    read = lambda _: SimpleNamespace(captures=[SimpleNamespace(state=next(states))])  # noqa: E731
    monkeypatch.setattr(rlprof, "read", read)

    _wait_for_exports("", said.append)

    assert (len(said), [*states]) == (1, [])


# failures.md: driver-ended
def test_a_role_that_is_too_small_for_the_ranks_is_not_recorded():
    """`--rank 1` selects rank 1 of the actors and leaves out the role with one member."""
    found = [SimpleNamespace(role=one, kind=Kind("", "", one)) for one in ("actor", "actor", "ref")]
    assert config_of(found, {"tool": ["torch"]}, [1], 9)["roles"] == {"actor": {"ranks": [1]}}


def test_training_goes_on_when_the_shell_is_killed(ray, run, tmp_path):
    """If the shell is killed, actors close their windows themselves and training continues."""
    asked = shell(ray, tmp_path, "--steps", "100")
    assert re.fullmatch(r"rlprof: the cluster at \S+:\d+\n", next(asked.stderr))
    assert any("recording" in line for line in asked.stderr)
    asked.kill()
    asked.communicate()

    step = run.step
    wait_until(lambda: not any(ray.get([aside(one, followed) for one in run.workers])))
    wait_until(lambda: run.step >= step + 3)

    assert run.is_as_bare()
    (folder,) = Path(tmp_path / "runs").iterdir()
    states = {one.state for one in rlprof.read(folder).captures if one.target.role == "actor"}
    assert "whole" in states


def test_other_actors_are_given_by_class_and_followed_by_their_calls(
    ray, spawn, tmp_path, monkeypatch, capsys
):
    """`--actors` selects live actors by class, and `--ends-step` the method that ends a step."""
    monkeypatch.chdir(tmp_path)
    actors = [spawn(Learner, rank) for rank in (0, 1)]
    ray.get([actor.__ray_ready__.remote() for actor in actors])
    spawn(type("Learner", (Learner,), {}), resources={"nowhere": 1})  # it does not run yet

    with Run(ray, [], [], lambda: ray.get([actor.update.remote(1, 0.3) for actor in actors])):
        code = main(["attach", "--actors", "^Learner$", "--ends-step", "update", "--tool", "stacks",
                     "--yes"])  # fmt: skip

    out, err = capsys.readouterr()
    (folder,) = Path("outputs/profile").iterdir()
    found = rlprof.read(folder).captures
    assert code == 0, err
    told = [(str(one.target), one.state) for one in found]
    assert told == [("actor 0/2", "whole"), ("actor 1/2", "whole")]
    assert ("yours" in out, "Trainer" in out) == (True, False)


def test_a_wrong_actor_method_tool_or_rank_is_refused_with_a_hint(ray, spawn, capsys):
    """A wrong actor, method, tool or rank, or an invalid pattern, is an error with a hint."""
    ray.get(spawn(Learner).__ray_ready__.remote())

    wrong = ("Learnr update torch", "^Learner$ updat torch", "Learn update toch",
             "Learn update torch --rank 0,1")  # fmt: skip
    codes = [
        main(["attach", "--actors", actors, "--ends-step", method, "--tool", tool, "--yes", *more])
        for actors, method, tool, *more in map(str.split, wrong)
    ]

    err = capsys.readouterr().err
    assert codes == [1, 1, 1, 1]
    assert "--rank: 1 does not exist; the last rank here is 0" in err
    assert "--tool: 'toch' is no tool; did you mean 'torch'?" in err
    assert "no actor matches Learnr; the live actors are: " in err
    assert "has no method updat" in err
    with pytest.raises(SystemExit):
        main(["attach", "--actors", "("])
    assert "is no regular expression" in capsys.readouterr().err


def unseen(actor):
    """Put the process in the state of one that began before rlprof was installed in place."""
    sys.path[:] = [one for one in sys.path if not Path(one, "rlprof_ray").is_dir()]
    for name in [one for one in sys.modules if one.startswith("rlprof")]:
        del sys.modules[name]
    return importlib.util.find_spec("rlprof_ray") is None


def test_an_actor_sees_what_was_installed_in_place_after_it_began(ray, spawn):
    """An actor that began before an editable install of rlprof can still import its plugins."""
    actor = spawn(type("Learner", (Learner,), {}), 0)
    assert ray.get(aside(actor, unseen))

    looks, failed = look_at({"a": (actor, "", "")}, 60, print)

    assert failed == {}
    assert "torch" in looks["a"].plugins


class MegatronTrainRayActor(Trainer):
    """A stand-in for slime's trainer, with the name of its class."""

    def train(self, step):
        return self.update(step, 0.2)


class RolloutManager:
    """A stand-in for the manager that slime's driver asks for rollouts."""

    def generate(self):
        time.sleep(0.3)


def test_a_manager_of_rollouts_is_watched_but_not_recorded(
    ray, spawn, tmp_path, monkeypatch, capsys
):
    """Without a tool, slime's rollout manager is watched; with a tool, only trainers record."""
    slime = [one for one in command.KINDS if one.framework == "slime"]
    monkeypatch.setattr(command, "KINDS", slime)  # other tests' actors are live, too
    assert main(["attach", "--yes"]) == 1
    assert "no run of a known framework is live here (classes of" in capsys.readouterr().err
    trainer, manager = spawn(MegatronTrainRayActor), spawn(RolloutManager)
    ray.get([one.__ray_ready__.remote() for one in (trainer, manager)])

    def train():
        ray.get(manager.generate.remote())
        ray.get(trainer.train.remote(1))

    def attach(tool):
        argv = ["attach", "--steps", "3", "--tool", tool, "--run-dir", str(tmp_path / tool)]
        code = main([*argv, "--yes"])
        out, err = capsys.readouterr()
        assert code == 0, err
        (folder,) = (tmp_path / tool).iterdir()
        phases = {one.name for one in rlprof.read(folder).spans() if one.kind == "phase"}
        return re.findall("^slime +(\\w+)", out, re.MULTILINE), phases

    with Run(ray, [], [], train):
        watched, recorded = attach("none"), attach("stacks")

    assert watched == (["actor", "rollout_manager"], {"generate", "train"})
    assert recorded == (["actor"], {"train"})


def test_a_run_that_has_died_ends_the_command(ray, spawn, tmp_path):
    """If the run dies, the command fails and names the run folder with the steps so far."""
    actor = spawn(Learner)
    ray.get(actor.__ray_ready__.remote())
    asked = shell(ray, tmp_path, "--actors", "^Learner$", "--ends-step", "update")
    assert any("waiting for the next step" in line for line in asked.stderr)
    ray.get(actor.update.remote(1))
    assert any("step 1: recording" in line for line in asked.stderr)

    ray.kill(actor)

    _, err = asked.communicate(timeout=60)
    (folder,) = Path(tmp_path / "runs").iterdir()
    assert asked.returncode == 1
    assert f"rlprof ls {folder}" in err
    assert "has ended: no further step" in err


# failures.md: fleets-meet
def test_actors_of_another_fleet_are_left_to_it(spawn, config, capsys):
    """`attach` refuses actors of another fleet and names its run; another job has no actors."""
    actor, argv = spawn(Learner), ["attach", "--actors", "^Learner$", "--tool", "stacks", "--yes"]

    with attached(config(), actor=[actor]) as fleet:
        codes = main(argv), main([*argv, "--job", "ab"])

    assert codes == (1, 1)
    assert capsys.readouterr().err.count(f"rlprof capture {fleet.run_dir}") == 1
    assert rows(fleet) == []
