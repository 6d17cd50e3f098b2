"""Trajectories from verl's marks, on a module that has them; no verl."""

import asyncio
import contextlib
from types import SimpleNamespace

import rlprof
from rlprof_verl._trajectories import note
from tests.cases import cases


@contextlib.contextmanager
def rollout_trace_attr(sample_index=None, step=None, rollout_n=None, validate=False, **_):
    yield


class AgentLoopWorker:
    def __init__(self, mark):
        self.mark = mark

    async def run(self, *place, **more):
        with self.mark(*place, **more):
            await asyncio.sleep(0)
            await self._compute_score([], {})

    async def _compute_score(self, outputs, kwargs):
        await asyncio.sleep(0.001)


@cases(
    "places, more, ids",
    ([(5, 1, 0), (5, 1, 1), (6, 1, 0)], {}, ["1-5-0", "1-5-1", "1-6-0"]),
    # the V1 trainer numbers each 0; the next time, the count begins again
    ([(5, 1, 0), (5, 1, 0), (6, 1, 0)], {}, ["1-5-0", "1-5-1", "1-6-0"]),
    ([(5, 1, 0)], {"validate": True}, ["validate-1-5-0"]),
)
def test_a_trajectory_has_its_step_sample_and_rollout(tmp_path, places, more, ids):
    """A trajectory is named by its step, sample and rollout, and its reward is part of it."""
    marks = SimpleNamespace(rollout_trace_attr=rollout_trace_attr, rollout_trace_op=str)
    loop = SimpleNamespace(AgentLoopWorker=type("AgentLoopWorker", (AgentLoopWorker,), {}))
    note(marks)
    note(loop)
    worker = loop.AgentLoopWorker(marks.rollout_trace_attr)

    async def all_at_once():
        await asyncio.gather(*(worker.run(*place, **more) for place in places))

    config = {"run_dir": str(tmp_path), "tool": "none"}
    with rlprof.open(config, role="agent", rank=0, world_size=1):
        asyncio.run(all_at_once())
        asyncio.run(all_at_once())

    (folder,) = tmp_path.iterdir()
    spans = rlprof.read(folder).spans()
    found = sorted((span.attributes["trajectory"], span.name) for span in spans)
    parts = ("reward", "trajectory") * 2  # the loop runs twice
    assert found == sorted((one, name) for one in ids for name in parts)
