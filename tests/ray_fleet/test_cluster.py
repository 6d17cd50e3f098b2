"""Three raylets: training actors on two nodes, of which one goes."""

from __future__ import annotations

import hashlib

import pytest

import rlprof
from tests.ray_fleet.drivers import said_by
from tests.ray_fleet.faults import LIMITS, SLACK_S, bare, states

pytestmark = pytest.mark.slow


# failures.md: actor-gone, left-on-node
def test_of_three_raylets_one_goes_and_the_others_go_on(config, tmp_path):
    """Its members are lost, then failed; what they have left on its disk comes by its host.

    Another raylet of the host reads that disk; what waits for salvage is kept there.
    """
    nodes = tmp_path / "nodes"
    given = config(limits=LIMITS, fleet={"node_dir": str(nodes)})

    _, (out,) = said_by("cluster_step", given)

    run = rlprof.read(out["run"])
    gone = {2: "lost", 3: "failed"}
    assert states(run.path) == {
        f"{step}/update actor {rank}/4": gone[step] if rank % 2 else "whole"
        for step in (2, 3) for rank in range(4)
    }  # fmt: skip
    assert out["totals"] == bare((0, 2), (1, 2, 3))
    for artifact in (artifact for capture in run.captures for artifact in capture.artifacts):
        data = (run.path / artifact.path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == artifact.sha256
    (left,) = run.left
    assert [str(file.parent) for file in nodes.glob("*/*/run.json")] == [left.folder]
    assert f"there: rlprof salvage {left.folder}, then collect again" in left.reason
    assert out["closed_s"] < LIMITS["stop_timeout_s"] + SLACK_S + 30  # exports, and their way home
