"""What verl's marks of trajectories become, on a module that has them; no verl."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_verl._trajectories import note, note_rewards


@contextlib.contextmanager
def rollout_trace_attr(sample_index=None, step=None, rollout_n=None, validate=False, **_):
    """Mark a trajectory, as verl does."""
    yield


class AgentLoopWorker:
    """Runs trajectories, and computes their rewards."""

    def __init__(self, mark):
        self.mark = mark

    async def run(self, *place, **more):
        with self.mark(*place, **more):
            await asyncio.sleep(0)
            await self._compute_score([], {})

    async def _compute_score(self, outputs, kwargs):
        await asyncio.sleep(0.001)


@pytest.fixture(name="spans")
def _spans(tmp_path):
    """Return a function that runs places at the same time, and returns the spans by trajectory."""

    def run(*places, **more):
        module = SimpleNamespace(
            rollout_trace_attr=rollout_trace_attr,
            rollout_trace_op=lambda function: function,
            AgentLoopWorker=type("AgentLoopWorker", (AgentLoopWorker,), {}),
        )
        note(module)
        note_rewards(module)
        worker = module.AgentLoopWorker(module.rollout_trace_attr)

        async def all_at_once():
            await asyncio.gather(*(worker.run(*place, **more) for place in places))

        config = {"run_dir": str(tmp_path), "tool": "none"}
        with rlprof.open(config, role="agent", rank=0, world_size=1):
            asyncio.run(all_at_once())
            asyncio.run(all_at_once())
        (folder,) = tmp_path.iterdir()
        spans = rlprof.read(folder).spans()
        return sorted((span.attributes["trajectory"], span.name) for span in spans)

    return run


def names(*ids):
    """Return what two trajectories of each id leave."""
    return sorted((one, name) for one in ids for name in ("reward", "trajectory") * 2)


def test_a_trajectory_has_its_step_sample_and_rollout(spans):
    """And its reward is part of it."""
    assert spans((5, 1, 0), (5, 1, 1), (6, 1, 0)) == names("1-5-0", "1-5-1", "1-6-0")


def test_rollouts_of_a_prompt_that_verl_does_not_number_are_numbered(spans):
    """The V1 trainer says 0 of each; the next time, they are counted again."""
    assert spans((5, 1, 0), (5, 1, 0), (6, 1, 0)) == names("1-5-0", "1-5-1", "1-6-0")


def test_a_trajectory_of_validation_is_called_so(spans):
    """Its sample may be one that is trained on, too."""
    assert spans((5, 1, 0), validate=True) == names("validate-1-5-0")
