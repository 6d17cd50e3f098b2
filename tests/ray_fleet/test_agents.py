"""Agent loops in an async actor of a fleet: many trajectories at a time, with the driver's step."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

import rlprof
import rlprof_ray
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import own_spans, rows
from tests.ray_fleet.faults import bare

pytestmark = pytest.mark.slow

ROLES = {"actor": {"ranks": "all", "phases": ["update"]}, "agent": {"ranks": "all", "tool": []}}
COUNT = 20


class Agent:
    """Goes through many trajectories at a time; no line of it knows of a fleet or of a session."""

    async def rollout(self, step, count):
        return sum(await asyncio.gather(*(self._one(step, number) for number in range(count))))

    async def _one(self, step, number):
        async with rlprof.trajectory(f"{step}/{number}") as path:
            for turn in range(2):
                with path.turn(turn):
                    async with path.request():
                        await asyncio.sleep(number % 5 / 1000)
        return number**2


def train(ray, fleet, agents, actors, steps):
    out = []
    for step in fleet.steps(steps):
        with fleet.phase("rollout"):
            out.append(ray.get([agent.rollout.remote(step, COUNT) for agent in agents]))
        with fleet.phase("update"):
            out.append(ray.get([actor.update.remote(step) for actor in actors]))
    return out


def test_spans_of_agents_have_the_step_and_their_trajectory(ray, spawn, config):
    """Each loop has its spans with its own id and step, and rows for the phases of the driver."""
    agents, actors = [spawn(Agent), spawn(Agent)], [spawn(Trainer)]

    with rlprof_ray.Fleet(config(steps=[2], roles=ROLES)) as fleet:
        fleet.attach(actor=actors, agent=agents)
        told = train(ray, fleet, agents, actors, (1, 2, 3))

    assert told[::2] == [[sum(number**2 for number in range(COUNT))] * 2] * 3
    assert told[1::2] == bare((0,), (1, 2, 3))
    assert rows(fleet) == ["2/update actor 0/1 whole"]
    run = rlprof.read(fleet.run_dir)
    assert run.problems == run.skipped == run.missing == ()
    own = [span for span in own_spans(fleet) if span.target.role == "agent"]
    phases = Counter((span.name, span.step) for span in own if span.kind == "phase")
    assert phases == {("rollout", 2): 2, ("update", 2): 2}
    spans = [span for span in own if span.kind == "span"]
    for span in spans:
        assert span.step == (2 if span.attributes["trajectory"].startswith("2/") else None)
    seen = Counter((one.attributes["trajectory"], one.target.rank, one.name) for one in spans)
    ids = {f"{step}/{number}" for step in (1, 2, 3) for number in range(COUNT)}
    counts = {"trajectory": 1, "turn": 2, "request": 2}
    assert seen == {(one, rank, name): counts[name] for one in ids for rank in (0, 1)
                    for name in counts}  # fmt: skip
