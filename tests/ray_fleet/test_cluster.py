"""Three raylets: a step with training actors and replicas on two nodes, and a node that goes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest

import rlprof
from tests.ray_fleet.conftest import ROOT
from tests.ray_fleet.faults import LIMITS, SLACK_S

pytestmark = pytest.mark.slow

ROLES = {
    "actor": {"ranks": "all"},
    "rollout": {"ranks": "all", "engine": "mini"},
    "agent": {"ranks": "all", "tool": []},
}
DISCRETE = {
    "actor": ROLES["actor"] | {"phases": ["update"]},
    "rollout": ROLES["rollout"] | {"phases": ["rollout"]},
    "agent": ROLES["agent"],
}


def run_it(config, *more):
    """Run the driver in a process of its own; return what it said, and the run."""
    path = os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.ray_fleet.cluster_step", json.dumps(config), *more],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    told = [line[4:] for line in done.stdout.splitlines() if line.startswith("OUT ")]
    assert told, done.stderr[-3000:]
    out = json.loads(told[0])
    return out, rlprof.read(out["run"]) if out["run"] != "None" else None


@pytest.mark.parametrize("mode", ["discrete", "continuous"])
def test_a_step_on_three_raylets_is_one_run(config, mode, tmp_path):
    """All of four trainers, two replicas and an agent is whole, and on one timeline."""
    roles = DISCRETE if mode == "discrete" else ROLES
    from rlprof_timeline import Timeline

    out, run = run_it(config(steps=[2], mode=mode, roles=roles))

    phases = {"actor": "2/update", "rollout": "2/rollout"} if mode == "discrete" else {}
    expected = {f"{phases.get('actor', '2')} actor {rank}/4 whole" for rank in range(4)}
    expected |= {f"{phases.get('rollout', '2')} rollout replica {n} whole" for n in (0, 1)}
    assert expected == {f"{one.window.id} {one.target} {one.state}" for one in run.captures}
    assert out["nodes"] == 2
    assert run.problems == run.missing == ()
    assert all(not one.unsupported for one in run.captures)
    of_agent = [span for span in run.spans() if span.target.role == "agent" and span.step == 2]
    loops = {span.attributes["trajectory"] for span in of_agent if span.name == "trajectory"}
    assert loops == {f"2/{number}" for number in range(20)}
    (made,) = Timeline().export(run, tmp_path, {})
    with gzip.open(made, "rt") as file:
        timeline = json.load(file)
    assert timeline["rlprof"]["left_out"] == []
    targets = {source["target"] for source in timeline["rlprof"]["sources"]}
    assert targets == {
        "driver 0/1", "agent 0/1", *(f"actor {rank}/4" for rank in range(4)),
        *(f"rollout replica {number}" for number in (0, 1)),
    }  # fmt: skip


def test_of_three_raylets_one_goes_and_the_others_go_on(config):
    """Its members are lost, then failed; the other node's are whole, with the same result."""
    given = config(steps=[2, 3], roles=DISCRETE, limits=LIMITS)
    out, run = run_it(given, "lose")
    bare, _ = run_it(given | {"enabled": False})

    states = {(one.target.role, one.target.rank, one.window.start_step): one.state
              for one in run.captures}  # fmt: skip
    assert [states["actor", rank, step] for rank in (0, 2) for step in (2, 3)] == ["whole"] * 4
    for rank in (1, 3):
        assert states["actor", rank, 2] == "lost"
        assert states["actor", rank, 3] == "failed"
    assert bare["totals"] == out["totals"]
    assert out["closed_s"] < LIMITS["stop_timeout_s"] + SLACK_S + 10  # and the exports of others
