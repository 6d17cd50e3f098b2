"""The page of the manifest has what a fleet's driver writes, and nothing else."""

from __future__ import annotations

import json

import pytest

import rlprof_ray
from tests.docs.pages import PAGES, rows, section, words
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.test_clocks import Astray

pytestmark = pytest.mark.slow


def test_what_a_driver_writes_is_what_is_listed(ray, spawn, config, tmp_path):
    """A member that is dead, one whose clock is off, a node's own folder: the table has it all."""
    nodes = {"node_dir": str(tmp_path / "nodes")}
    actors = [spawn(Trainer), spawn(Astray, 3)]
    with rlprof_ray.Fleet(config(steps=[2], fleet=nodes)) as fleet:
        fleet.attach(actor=actors)
        actors[0].die.remote()
        for step in fleet.steps((1, 2)):
            with fleet.phase("update"):
                ray.get(actors[1].update.remote(step, 0.3))
    (own,) = fleet.run_dir.glob("manifest/driver-*.jsonl")
    (collected,) = fleet.run_dir.glob("manifest/+collect-*.jsonl")
    told = (own.read_text() + collected.read_text()).splitlines()
    written = {line["event"]: set(line) - {"event", "mono", "of"} for line in map(json.loads, told)}
    part = section(PAGES["docs/manifest.md"], "What a fleet's driver says of its members")
    table = {row[0].strip("`"): set(words(row[1])) for row in rows(part)}

    events = ("clock_offset", "missed", "elsewhere", "collected")
    assert table == {event: written[event] for event in events}
