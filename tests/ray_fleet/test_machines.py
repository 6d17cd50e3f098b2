"""Disks that fill up under a fleet: training is the same, and what is said is true."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import rlprof
import rlprof_ray
from rlprof_cli import main
from tests.faults.disks import tmpfs
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows
from tests.ray_fleet.faults import bare

pytestmark = pytest.mark.slow


def fill(folder):
    """Leave no room on a disk."""
    with (folder / "filler").open("wb", buffering=0) as out, suppress(OSError):
        while True:
            out.write(b"x" * 4096)


def train(ray, fleet, actors, fills=None):
    """Run three steps, *fills* being called in the first; return what training made."""
    with fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps((1, 2, 3)):
            if step == 1 and fills is not None:
                fleet.session.scribe.flush()  # it has said where its members write
                fills()
            with fleet.phase("update"):
                totals = ray.get([actor.update.remote(step) for actor in actors])
    return totals


# failures.md: disk-full
def test_a_run_folder_that_is_full_leaves_all_on_the_nodes(ray, spawn, config, tmp_path):
    """It is listed; once there is room, `rlprof collect` brings it and all is whole."""
    given = config(run_dir=str(tmp_path / "runs"), fleet={"node_dir": str(tmp_path / "nodes")})
    with tmpfs(tmp_path / "runs", "size=256k") as disk:
        fleet = rlprof_ray.Fleet(given)

        totals = train(ray, fleet, [spawn(Trainer, 5)], lambda: fill(disk))
        (left,) = rlprof.read(fleet.run_dir).left
        (disk / "filler").unlink()
        code = main(["collect", str(fleet.run_dir)])

        assert bare((5,), (1, 2, 3))[-1] == totals
        assert tmp_path / "nodes" in Path(left.folder).parents
        assert code == 0
        assert rlprof.read(fleet.run_dir).left == ()
        assert rows(fleet) == ["2/update actor 0/1 whole", "3/update actor 0/1 whole"]


# failures.md: node-off
def test_a_node_that_takes_nothing_leaves_rlprof_off_there(ray, spawn, config, tmp_path):
    """It is named, with the reason; there is nothing to collect."""
    with tmpfs(tmp_path / "nodes", "size=256k,nr_inodes=2") as disk:
        fleet = rlprof_ray.Fleet(config(fleet={"node_dir": str(disk)}))
        with suppress(OSError):
            for number in count():
                (disk / f"filler{number}").touch()

        totals = train(ray, fleet, [spawn(Trainer, 5)])

        run = rlprof.read(fleet.run_dir)
        assert bare((5,), (1, 2, 3))[-1] == totals
        assert run.left == ()
        assert "rlprof stays off there" in " ".join(run.problems)
