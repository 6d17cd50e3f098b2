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

pytestmark = pytest.mark.slow


def fill(folder):
    """Leave no room on a disk."""
    with (folder / "filler").open("wb", buffering=0) as out, suppress(OSError):
        while True:
            out.write(b"x" * 4096)


def use_up(folder):
    """Leave no room for one more file; those that are there may grow."""
    with suppress(OSError):
        for number in count():
            (folder / f"filler{number}").touch()


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


@pytest.fixture(name="bare")
def _bare(ray, spawn):
    """Return what training makes without rlprof."""
    return train(ray, rlprof_ray.Fleet({"enabled": False}), [spawn(Trainer, 5)])


@pytest.fixture(name="begin")
def _begin(spawn, config):
    """Return a function that opens a fleet and starts its actor."""
    return lambda **changes: (rlprof_ray.Fleet(config(**changes)), spawn(Trainer, 5))


@pytest.fixture(name="collect")
def _collect(capsys):
    """Return a function that runs the command, which brings everything."""

    def collect(fleet):
        code = main(["collect", str(fleet.run_dir)])
        assert code == 0, capsys.readouterr()
        return rlprof.read(fleet.run_dir)

    return collect


WHOLE = ["2/update actor 0/1 whole", "3/update actor 0/1 whole"]


# failures.md: disk-full
def test_a_run_folder_that_is_full_leaves_all_on_the_nodes(ray, begin, tmp_path, bare, collect):
    """It is listed; once there is room, `rlprof collect` brings it and all is whole."""
    nodes = {"node_dir": str(tmp_path / "nodes")}
    with tmpfs(tmp_path / "runs", "size=256k") as disk:
        fleet, actor = begin(run_dir=str(disk), fleet=nodes)

        totals = train(ray, fleet, [actor], lambda: fill(disk))
        (left,) = rlprof.read(fleet.run_dir).left
        (disk / "filler").unlink()
        run = collect(fleet)

        assert bare == totals
        assert tmp_path / "nodes" in Path(left.folder).parents
        assert run.left == ()
        assert rows(fleet) == WHOLE


# failures.md: left-on-node
def test_what_a_full_node_has_not_exported_is_salvaged_there(ray, begin, tmp_path, bare, collect):
    """Nothing hangs, and it is said what to do; when that is done, all comes home."""
    with tmpfs(tmp_path / "nodes", "size=256k,nr_inodes=30") as disk:
        fleet, actor = begin(fleet={"node_dir": str(disk)})

        totals = train(ray, fleet, [actor], lambda: use_up(disk))
        (left,) = rlprof.read(fleet.run_dir).left
        before = rows(fleet)
        for file in disk.glob("filler*"):
            file.unlink()
        salvaged = main(["salvage", left.folder])
        run = collect(fleet)

        assert bare == totals
        assert [row.replace("whole", "failed") for row in WHOLE] == before
        assert (
            f"2 captures were not exported; there: rlprof salvage {left.folder}, then collect again"
            == left.reason
        )
        assert salvaged == 0
        assert run.left == ()
        assert rows(fleet) == WHOLE


# failures.md: node-off
def test_a_node_that_takes_nothing_leaves_rlprof_off_there(ray, begin, tmp_path, bare):
    """It is named, with the reason; there is nothing to collect."""
    with tmpfs(tmp_path / "nodes", "size=256k,nr_inodes=2") as disk:
        fleet, actor = begin(fleet={"node_dir": str(disk)})
        use_up(disk)

        totals = train(ray, fleet, [actor])

        run = rlprof.read(fleet.run_dir)
        assert bare == totals
        assert run.left == ()
        assert "rlprof stays off there" in " ".join(run.problems)
