"""Three raylets, each with a folder of its own: the run comes home as if all had shared one."""

from __future__ import annotations

import hashlib

import pytest

from tests.ray_fleet.test_cluster import DISCRETE, run_it

pytestmark = pytest.mark.slow


def wrong(run):
    """Name the artifacts whose bytes are not those the manifest says."""
    named = [artifact for capture in run.captures for artifact in capture.artifacts]
    return [
        one.path
        for one in named
        if hashlib.sha256((run.path / one.path).read_bytes()).hexdigest() != one.sha256
    ]


def test_the_whole_of_three_nodes_comes_home(config, tmp_path):
    """Four trainers and two replicas on two nodes: all whole, nothing left there."""
    nodes = tmp_path / "nodes"

    out, run = run_it(config(steps=[2], roles=DISCRETE, fleet={"node_dir": str(nodes)}))

    expected = {f"2/update actor {rank}/4 whole" for rank in range(4)}
    expected |= {f"2/rollout rollout replica {n} whole" for n in (0, 1)}
    assert expected == {f"{one.window.id} {one.target} {one.state}" for one in run.captures}
    assert (wrong(run), run.left, run.problems, run.missing) == ([], (), (), ())
    assert [file for file in nodes.rglob("*") if not file.is_dir()] == []
    assert out["nodes"] == 2


def test_what_a_node_that_goes_has_written_comes_by_its_host(config, tmp_path):
    """Another raylet of the host reads its disk; what waits for salvage is kept there, and said."""
    nodes = tmp_path / "nodes"

    _, run = run_it(config(steps=[2, 3], roles=DISCRETE, fleet={"node_dir": str(nodes)}), "lose")

    states = {(one.target.role, one.target.rank, one.window.start_step): one.state
              for one in run.captures}  # fmt: skip
    assert [states["actor", rank, step] for rank in (0, 2) for step in (2, 3)] == ["whole"] * 4
    assert [states["actor", rank, 2] for rank in (1, 3)] == ["lost"] * 2
    assert [states["actor", rank, 3] for rank in (1, 3)] == ["failed"] * 2
    assert wrong(run) == []
    (left,) = run.left
    assert [left.folder] == [str(file.parent) for file in nodes.glob("*/*/run.json")]
    assert f"there: rlprof salvage {left.folder}, then collect again" in left.reason
