"""Which stage a native window's file is of, where SGLang does not name it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlprof import Target
from rlprof_sglang._export import _missing, _whose

FACTS = {"workers": 2, "tp": 2, "pp": 1, "dp": 1}


def trace(worker, stage=None):
    return {"worker": worker, "stage": stage}


@pytest.mark.parametrize(
    ("name", "beside", "stage"),
    [
        ("gs1-TP-0", ("gs1-TP-0-EXTEND",), "decode"),
        ("gs1-TP-0", ("gs1-TP-0-DECODE",), "prefill"),
        ("gs1-TP-0", ("gs1-TP-1-EXTEND",), None),
    ],
)
def test_a_stage_that_our_stop_has_ended_is_the_other_one(name, beside, stage):
    """SGLang names the file of such a session without one; alone, it may be either."""
    capture = SimpleNamespace(target=Target("rollout", 0, 1, replica=0))
    names = {f"{one}.trace.json.gz" for one in (name, *beside)}

    found = _whose(capture, FACTS, names, f"{name}.trace.json.gz", SimpleNamespace(steps=3))

    assert found.told["stage"] == stage
    notes = {"way": "native", "facts": FACTS, "folder": "/tmp/x", "by_stage": True}
    traces = [trace(0, str(stage)), trace(1, "prefill"), trace(1, "decode")]
    _, idle = _missing(notes, traces)
    unknown = "worker 0: one of the two stages was not recorded in the window"
    assert (unknown in idle) == (stage is None)
    assert len(idle) == 1
