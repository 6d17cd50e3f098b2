"""Faults of machines: full disks, wrong clocks, a node that goes away."""

import gzip
import hashlib
import json
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import rlprof
import rlprof_ray
from rlprof_cli import main
from tests.faults.disks import tmpfs
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows, train
from tests.ray_fleet.drivers import said_by
from tests.ray_fleet.faults import LIMITS, SLACK_S, bare, states

pytestmark = pytest.mark.slow


def fill(folder):
    with (folder / "filler").open("wb", buffering=0) as out, suppress(OSError):
        while True:
            out.write(b"x" * 4096)


# failures.md: disk-full
def test_a_run_folder_that_is_full_leaves_all_on_the_nodes(ray, spawn, config, tmp_path):
    """If the run folder is full, files stay on the node until `rlprof collect` fetches them."""
    given = config(run_dir=str(tmp_path / "runs"), fleet={"node_dir": str(tmp_path / "nodes")})
    with tmpfs(tmp_path / "runs", "size=256k") as disk:
        fleet = rlprof_ray.Fleet(given)

        with fleet:
            fleet.attach(actor=(actors := [spawn(Trainer, 5)]))
            fleet.session.scribe.flush()  # it has noted where its members write
            fill(disk)
            out = train(ray, fleet, actors, (1, 2, 3))
        (left,) = rlprof.read(fleet.run_dir).left
        (disk / "filler").unlink()
        code = main(["collect", str(fleet.run_dir)])

        assert bare((5,), (1, 2, 3)) == out
        assert tmp_path / "nodes" in Path(left.folder).parents
        assert code == 0
        assert rlprof.read(fleet.run_dir).left == ()
        assert rows(fleet) == ["2/update actor 0/1 whole", "3/update actor 0/1 whole"]


# failures.md: node-off
def test_rlprof_stays_off_on_a_node_without_room(spawn, config, trained, tmp_path):
    """If a member cannot write to its node, rlprof stays off there and the run names it."""
    with tmpfs(tmp_path / "nodes", "size=256k,nr_inodes=2") as disk:
        given = config(fleet={"node_dir": str(disk)})
        with suppress(OSError):
            for number in count():
                (disk / f"filler{number}").touch()

        fleet, out = trained(given, [spawn(Trainer, 5)], (1, 2, 3))

        run = rlprof.read(fleet.run_dir)
        assert bare((5,), (1, 2, 3)) == out
        assert run.left == ()
        assert "rlprof stays off there" in " ".join(run.problems)


QUARTER_S = 91 * 86400


class Astray(Trainer):
    """An actor whose wall clock, as Python reads it, is *ahead_s* ahead."""

    def __init__(self, ahead_s):
        super().__init__()
        real, real_ns = time.time, time.time_ns
        time.time = lambda: real() + ahead_s
        time.time_ns = lambda: real_ns() + int(ahead_s * 1e9)


# failures.md: member-clock
def test_a_wrong_clock_of_a_member_is_corrected(spawn, config, trained, tmp_path):
    """Spans and traces of a member with a wrong clock lie within the driver's phase."""
    actors = [spawn(Trainer), spawn(Astray, -QUARTER_S)]

    fleet, out = trained(config(steps=[2]), actors)

    from rlprof_timeline import Timeline

    run = rlprof.read(fleet.run_dir)
    offsets = {p.target.rank: p.offset_ns / 1e9 for p in run.processes if p.target.role == "actor"}
    assert offsets[0] == 0
    assert offsets[1] == pytest.approx(-QUARTER_S, abs=0.5)
    spans = {"".join(s.process.split("-")[:2]): s for s in run.spans() if s.step == 2
             and s.name == "update"}  # fmt: skip
    outer = spans["driver0"]
    for name in ("actor0", "actor1"):
        assert outer.start_ns - 5e8 < spans[name].start_ns < spans[name].end_ns < outer.end_ns + 5e8
    assert out == bare((0, 0), (1, 2))
    assert [one.state for one in run.captures] == ["whole", "whole"]
    (made,) = Timeline().render(run, tmp_path, {})
    with gzip.open(made, "rt") as file:
        events = json.load(file)["traceEvents"]
    drawn = [one for one in events if one["name"] == "update" and one["ph"] == "X"]
    (first, *inner) = [one for one in drawn if one.get("args", {}).get("step") != 1]
    assert [one["cat"] for one in drawn].count("stacks") == 2
    assert len(inner) == 4  # of each member its span and the range in its trace
    for one in inner:
        assert first["ts"] - 5e5 < one["ts"]
        assert one["ts"] + one["dur"] < first["ts"] + first["dur"] + 5e5


# failures.md: actor-gone, left-on-node
def test_only_members_on_a_removed_node_lose_windows(config, tmp_path):
    """Members on a removed node lose a window and then fail; those on other nodes stay whole."""
    nodes = tmp_path / "nodes"
    given = config(limits=LIMITS, fleet={"node_dir": str(nodes)})

    _, (out,) = said_by({"loses a node": given})

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
    assert out["closed_s"] < LIMITS["stop_timeout_s"] + SLACK_S + 30  # exports, collection
