"""Three raylets: training actors on two nodes, of which one goes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pytest

import rlprof
from tests.ray_fleet.conftest import ROOT
from tests.ray_fleet.faults import LIMITS, SLACK_S, bare

pytestmark = pytest.mark.slow


# failures.md: actor-gone, left-on-node
def test_of_three_raylets_one_goes_and_the_others_go_on(config, tmp_path):
    """Its members are lost, then failed; what they have left on its disk comes by its host.

    Another raylet of the host reads that disk; what waits for salvage is kept there.
    """
    nodes = tmp_path / "nodes"
    given = config(limits=LIMITS, fleet={"node_dir": str(nodes)})
    path = os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))

    done = subprocess.run(
        [sys.executable, "-m", "tests.ray_fleet.cluster_step", json.dumps(given)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )

    told = [line[4:] for line in done.stdout.splitlines() if line.startswith("OUT ")]
    assert told, done.stderr[-3000:]
    out = json.loads(told[0])
    run = rlprof.read(out["run"])
    assert {f"{one.window.id} {one.target} {one.state}" for one in run.captures} == {
        "2/update actor 0/4 whole", "3/update actor 0/4 whole",
        "2/update actor 1/4 lost", "3/update actor 1/4 failed",
        "2/update actor 2/4 whole", "3/update actor 2/4 whole",
        "2/update actor 3/4 lost", "3/update actor 3/4 failed",
    }  # fmt: skip
    assert out["totals"] == bare((0, 2), (1, 2, 3))
    assert out["nodes"] == 2
    for artifact in (artifact for capture in run.captures for artifact in capture.artifacts):
        data = (run.path / artifact.path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == artifact.sha256
    (left,) = run.left
    assert [str(file.parent) for file in nodes.glob("*/*/run.json")] == [left.folder]
    assert f"there: rlprof salvage {left.folder}, then collect again" in left.reason
    assert out["closed_s"] < LIMITS["stop_timeout_s"] + SLACK_S + 30  # exports, and their way home
