"""What is documented of a fleet: the events its driver writes, and the program of the README."""

import json
import shutil
import subprocess
import sys

import pytest

import rlprof
import rlprof_ray
from rlprof_run import find_runs
from tests.docs.pages import PAGES, rows, section, words
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import ROOT, train
from tests.ray_fleet.drivers import environment
from tests.ray_fleet.test_machines import Astray
from tests.ray_fleet.test_requests import ask

pytestmark = pytest.mark.slow


def test_what_a_driver_writes_is_what_is_listed(ray, spawn, config, tmp_path):
    """Members dead, busy, with another clock, a node's own folder: the table has it all."""
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
        ask(fleet, ranks=(0,))
        train(ray, fleet, [], (3,))
    written: dict[str, set[str]] = {}
    (own,) = fleet.run_dir.glob("manifest/driver-*.jsonl")
    (collected,) = fleet.run_dir.glob("manifest/+collect-*.jsonl")
    for line in map(json.loads, (own.read_text() + collected.read_text()).splitlines()):
        written.setdefault(line["event"], set()).update(set(line) - {"event", "mono", "of"})
    part = section(PAGES["docs/manifest.md"], "What a fleet's driver says of its members")
    table = {row[0].strip("`"): set(words(row[1])) for row in rows(part)}

    events = ("attached", "clock_offset", "late", "missed", "elsewhere", "collected", "calls")
    assert table == {event: written[event] for event in events}


def test_the_example_starts_raylets_of_its_own_and_is_recorded(tmp_path):
    """Ray is started by the program itself; torch records both actors in step 2."""
    for file in (ROOT / "examples/ray_loop").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    argv, env = [sys.executable, "train.py"], environment() | {"RAY_AUTH_MODE": "disabled"}

    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = find_runs(tmp_path / "outputs/profile")
    told = [f"{one.window.id} {one.target} {one.state}" for one in rlprof.read(run).captures]
    assert told == [f"2/update_actor actor {rank}/2 whole" for rank in (0, 1)]
