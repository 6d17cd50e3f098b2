"""A driver and its actors on real Ray: the windows that they record, and the files they write."""

import json
import shutil

import pytest
import yaml

import rlprof
import rlprof_ray
from rlprof_run import find_runs
from tests.core.test_on_demand import asked
from tests.docs import pages
from tests.ray_fleet.actors import AsyncTrainer, Trainer, Untouched
from tests.ray_fleet.conftest import ROOT, attached, own_spans, rows, train
from tests.ray_fleet.drivers import environment
from tests.ray_fleet.faults import bare
from tests.ray_fleet.test_machines import Astray
from tests.waiting import python, wait_until

pytestmark = pytest.mark.slow

STEPS = (1, 2, 3, 4)
KINDS = {
    "ordered": (Trainer, {}),
    "threaded": (Trainer, {"max_concurrency": 3}),
    "async": (AsyncTrainer, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_chosen_step_is_recorded_on_every_actor(spawn, config, trained, kind):
    """Ordered, threaded and async actors have whole windows and the results of a bare run."""
    cls, options = KINDS[kind]
    actors = [spawn(cls, rank, **options) for rank in (0, 1)]

    fleet, recorded = trained(config(), actors, STEPS)

    assert bare((0, 1), STEPS) == recorded
    expected = [f"{step}/update actor {rank}/2 whole" for step in (2, 3) for rank in (0, 1)]
    assert rows(fleet) == expected
    run = rlprof.read(fleet.run_dir)
    assert run.problems == run.missing == ()
    assert [process.state for process in run.processes] == ["ended"] * 3
    assert not list(run.path.glob("manifest/+*"))  # the folder is shared: nothing is collected


def test_the_environment_names_a_config_as_for_a_session(monkeypatch):
    """A fleet without a config reads the config that `RLPROF_CONFIG` names."""
    monkeypatch.setenv("RLPROF_CONFIG", "gone.yaml")

    with pytest.raises(rlprof.ConfigError, match=r"gone\.yaml"):
        rlprof_ray.Fleet()


def test_a_threaded_actor_gets_phases_in_order(ray, spawn, config):
    """Ray may reorder the calls of a threaded actor; it still sees phases in the driver's order."""
    cls, options = KINDS["threaded"]
    actor = spawn(cls, **options)
    roles = {"actor": {"ranks": "all"}}

    with rlprof_ray.Fleet(config(steps={"every": 1}, mode="continuous", roles=roles)) as fleet:
        fleet.attach(actor=[actor])
        for step in fleet.steps(range(5)):
            for number in range(40):
                with fleet.phase(f"{step}.{number}"):
                    pass

    assert rows(fleet) == [f"{step} actor 0/1 whole" for step in range(5)]
    run = rlprof.read(fleet.run_dir)
    notes = [note for capture in run.captures for note in capture.notes]
    assert [note for note in notes if "it was busy" not in note] == []  # the machine may be
    found = [(s.name, s.step) for s in own_spans(fleet) if s.process.startswith("actor")]
    assert found == [(f"{step}.{number}", step) for step in range(5) for number in range(40)]


def test_phases_in_a_window_of_several_steps_have_their_own_step(spawn, config, trained):
    """In a window of several steps, a member's phases have the step numbers of the driver."""
    roles = {"actor": {"ranks": "all"}}
    given = config(steps=[2, 3], roles=roles, mode="continuous", join_steps=True)

    fleet, _ = trained(given, [spawn(Trainer)], STEPS)

    spans = [span for span in own_spans(fleet) if span.kind == "phase"]
    own = [(one.step, one.occurrence) for one in spans if one.target.role == "actor"]
    assert rows(fleet) == ["2-3 actor 0/1 whole"]
    assert (own, len(spans)) == ([(2, 0), (3, 0)], 6)


def test_ranks_that_are_not_chosen_never_import_rlprof(ray, spawn, config, trained):
    """A rank that is not chosen has no window and never imports rlprof."""
    actors = [spawn(Untouched, rank) for rank in range(3)]
    roles = {"actor": {"ranks": [1], "phases": ["update"]}}

    def has_rlprof(actor):
        import sys

        return "rlprof" in sys.modules

    fleet, _ = trained(config(roles=roles), actors)

    assert rows(fleet) == ["2/update actor 1/3 whole"]
    touched = ray.get([actor.__ray_call__.remote(has_rlprof) for actor in actors])
    assert touched == [False, True, False]


def test_an_actor_under_two_roles_is_captured_once(actors, config, trained):
    """An actor attached as `actor` and as `ref` has one session and one capture of a window."""
    roles = {"actor": {"ranks": "all"}, "ref": {"ranks": "all"}}

    fleet, _ = trained(config(roles=roles, steps=[2]), actors, ref=actors)

    assert rows(fleet) == ["2/update actor 0/2 whole", "2/update actor 1/2 whole"]


@pytest.mark.parametrize("is_given", [True, False])
def test_a_disabled_fleet_has_no_run(spawn, config, trained, is_given):
    """Without a config, or with `enabled: false`, a fleet has no run and an empty launch."""
    given = config(enabled=False) if is_given else None

    fleet, out = trained(given, [spawn(Trainer)], (1,))

    assert (out, fleet.run_dir, fleet.launch("actor").runtime_env) == ([[1]], None, {})


def test_members_share_the_bytes_of_a_run(ray, spawn, config):
    """Each member may write an equal part of `limits.bytes`; beyond it, its windows are skipped."""

    def sizes():
        captures = rlprof.read(fleet.run_dir).captures
        return [sum(artifact.size for artifact in one.artifacts) for one in captures]

    actors = [spawn(Trainer, rank) for rank in range(3)]

    with attached(config(steps=[1, 2, 3], limits={"bytes": 3}), actor=actors) as fleet:
        train(ray, fleet, actors, (1,))
        wait_until(lambda: all(sizes()))
        train(ray, fleet, actors, (2, 3))  # members report their use when step 2 begins

    run = rlprof.read(fleet.run_dir)
    assert {one.window.start_step for one in run.captures if one.artifacts} == {1}
    assert {(one.step, one.reason) for one in run.skipped} == {
        (3, "its share of limits.bytes, 1, is used up")
    }
    assert [one.target.rank for one in run.skipped] == [0, 1, 2]


WORKER = """
import sys
import rlprof

with rlprof.open(sys.argv[1], role="reward") as prof:
    for step in prof.steps((1, 2)):
        with prof.phase("score"):
            sum(range(1000))
"""


def test_workers_of_torchrun_are_part_of_the_run(ray, spawn, config, tmp_path):
    """Workers of torchrun record the same step as the actors, into the same run folder."""
    roles = {"actor": {"phases": ["update"]}, "reward": {"ranks": "all", "phases": ["score"]}}
    given = config(steps=[2], roles=roles)
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "profile.yaml").write_text(yaml.safe_dump(given))
    actor = spawn(Trainer)

    with attached(tmp_path / "profile.yaml", actor=[actor]) as fleet:
        words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        env = environment() | fleet.env | {"OMP_NUM_THREADS": "1"}
        done = python(*words, tmp_path / "worker.py", tmp_path / "profile.yaml", env=env)
        train(ray, fleet, [actor], (1, 2))

    assert done.returncode == 0, done.stderr[-2000:]
    run = rlprof.read(fleet.run_dir)
    assert run.problems == run.missing == ()
    names = {"2/update actor 0/1 whole", "2/score reward 0/2 whole", "2/score reward 1/2 whole"}
    assert set(rows(fleet)) == names


def test_the_docs_list_the_fields_of_a_drivers_events(ray, spawn, config, tmp_path):
    """Each event in the driver's table of docs/manifest.md lists exactly the fields it has."""
    nodes = {"node_dir": str(tmp_path / "nodes")}
    actors = [spawn(Trainer), spawn(Astray, 3), spawn(Trainer)]
    with rlprof_ray.Fleet(config(steps=[2], fleet=nodes)) as fleet:
        fleet.name_calls()
        fleet.attach(actor=actors)
        ray.get(actors[2].update.remote(0))
        actors[0].die.remote()
        for step in fleet.steps((1, 2)):
            busy = actors[2].update.remote(step, 1.0)
            with fleet.phase("update"):
                ray.get(actors[1].update.remote(step, 0.3))
            ray.get(busy)
        asked(fleet.session, ranks=(0,))
        train(ray, fleet, [], (3,))
    written: dict[str, set[str]] = {}
    (own,) = fleet.run_dir.glob("manifest/driver-*.jsonl")
    (collected,) = fleet.run_dir.glob("manifest/+collect-*.jsonl")
    for line in map(json.loads, (own.read_text() + collected.read_text()).splitlines()):
        written.setdefault(line["event"], set()).update(set(line) - {"event", "mono", "of"})
    page = pages.PAGES["docs/manifest.md"]
    part = pages.section(page, "What a fleet's driver says of its members")
    table = {row[0].strip("`"): set(pages.words(row[1])) for row in pages.rows(part)}

    assert table == {event: written[event] for event in table}


def test_the_example_starts_raylets_of_its_own_and_is_recorded(tmp_path):
    """The example ray_loop starts its own Ray, and torch records both actors in step 2."""
    for file in (ROOT / "examples/ray_loop").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)

    own = {"RAY_AUTH_MODE": "disabled", "RAY_ADDRESS": "local"}  # not another one on this host
    done = python("train.py", cwd=tmp_path, env=environment() | own)

    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = find_runs(tmp_path / "outputs/profile")
    told = [f"{one.window.id} {one.target} {one.state}" for one in rlprof.read(run).captures]
    assert told == [f"2/update_actor actor {rank}/2 whole" for rank in (0, 1)]
