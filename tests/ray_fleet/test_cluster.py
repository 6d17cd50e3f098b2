"""Three raylets: a step with training actors and replicas on two nodes, and a node that goes.

Where nodes have folders of their own, the run comes home as if all had shared one.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import subprocess
import sys

import pytest

import rlprof
from tests.ray_fleet.conftest import ROOT
from tests.ray_fleet.faults import LIMITS, SLACK_S, bare
from tests.ray_fleet.test_agents import Agent

pytestmark = pytest.mark.slow

ROLES = {
    "actor": {"ranks": "all", "phases": ["update"]},
    "rollout": {"ranks": "all", "engine": "mini", "phases": ["rollout"]},
    "agent": {"ranks": "all", "tool": []},
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
    return out, rlprof.read(out["run"])


def wrong(run):
    """Name the artifacts whose bytes are not those the manifest says."""
    named = [artifact for capture in run.captures for artifact in capture.artifacts]
    return [
        one.path
        for one in named
        if hashlib.sha256((run.path / one.path).read_bytes()).hexdigest() != one.sha256
    ]


def test_a_step_on_three_raylets_is_one_run(config, tmp_path):
    """All of four trainers, two replicas and an agent is whole, at home, and on one timeline."""
    nodes = tmp_path / "nodes"
    from rlprof_timeline import Timeline

    out, run = run_it(config(steps=[2], roles=ROLES, fleet={"node_dir": str(nodes)}))

    expected = {f"2/update actor {rank}/4 whole" for rank in range(4)}
    expected |= {f"2/rollout rollout replica {n} whole" for n in (0, 1)}
    assert expected == {f"{one.window.id} {one.target} {one.state}" for one in run.captures}
    assert out["nodes"] == 2
    assert (wrong(run), run.left, run.problems, run.missing) == ([], (), (), ())
    assert [file for file in nodes.rglob("*") if not file.is_dir()] == []
    assert all(not one.unsupported for one in run.captures)
    of_agent = [span for span in run.spans() if span.target.role == "agent" and span.step == 2]
    loops = {span.attributes["trajectory"] for span in of_agent if span.name == "trajectory"}
    assert loops == {f"2/{number}" for number in range(20)}
    (made,) = Timeline().render(run, tmp_path, {})
    with gzip.open(made, "rt") as file:
        timeline = json.load(file)
    assert timeline["rlprof"]["left_out"] == []
    targets = {source["target"] for source in timeline["rlprof"]["sources"]}
    assert targets == {
        "driver 0/1", "agent 0/1", *(f"actor {rank}/4" for rank in range(4)),
        *(f"rollout replica {number}" for number in (0, 1)),
    }  # fmt: skip


# failures.md: actor-gone, left-on-node
def test_of_three_raylets_one_goes_and_the_others_go_on(config, tmp_path):
    """Its members are lost, then failed; what they have left on its disk comes by its host.

    Another raylet of the host reads that disk; what waits for salvage is kept there.
    """
    nodes = tmp_path / "nodes"
    given = config(steps=[2, 3], roles=ROLES, limits=LIMITS, fleet={"node_dir": str(nodes)})
    out, run = run_it(given, "lose")

    states = {(one.target.role, one.target.rank, one.window.start_step): one.state
              for one in run.captures}  # fmt: skip
    assert [states["actor", rank, step] for rank in (0, 2) for step in (2, 3)] == ["whole"] * 4
    for rank in (1, 3):
        assert states["actor", rank, 2] == "lost"
        assert states["actor", rank, 3] == "failed"
    squares = [asyncio.run(Agent().rollout(step, 20)) for step in (1, 2, 3)]
    totals = bare((0, 2), (1, 2, 3))
    assert out["totals"] == [[one, *own] for one, own in zip(squares, totals, strict=True)]
    assert wrong(run) == []
    (left,) = run.left
    assert [str(file.parent) for file in nodes.glob("*/*/run.json")] == [left.folder]
    assert f"there: rlprof salvage {left.folder}, then collect again" in left.reason
    assert out["closed_s"] < LIMITS["stop_timeout_s"] + SLACK_S + 30  # exports, and their way home
