"""verl's word for what to record is for SGLang's own profiler; inside, it is said to be none."""

from __future__ import annotations

import asyncio

import pytest

import rlprof
from rlprof_engine.answers import EngineRecording
from rlprof_sglang import Sglang, SglangOptions


class Told(Sglang):
    """A plugin whose only scheduler does as it is told."""

    async def _tell(self, order, workers):
        return [{"worker": 0, "state": "recording"}]


@pytest.mark.parametrize("contents", [None, ("cpu", "stack")])
def test_contents_inside_are_said_to_be_none(contents):
    """What is recorded there is said by the tools' own options, and the manifest says that."""
    plugin = Told(options=SglangOptions(contents=contents))
    said = EngineRecording()
    workers = rlprof.Workers(given={"config": {}, "role": "rollout"})

    asyncio.run(plugin._begin_inside(rlprof.Window(2, 3, "rollout"), workers, said))

    assert said.applied["workers"] == [0]
    assert ("contents" in said.unsupported) == (contents is not None)
