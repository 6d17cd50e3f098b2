"""What a native window says of what should be there and is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlprof import Target
from rlprof_sglang._export import _missing, _whose

FACTS = {"workers": 2, "tp": 2, "pp": 1, "dp": 1}


def told(**notes):
    """Return what is missing, and what had nothing to do, of a native window."""
    found = notes.pop("found")
    return _missing({"way": "native", "facts": FACTS, "folder": "/tmp/x", **notes}, found)


def trace(worker, stage=None):
    return {"worker": worker, "stage": stage}


@pytest.mark.parametrize(
    ("notes", "why"),
    [
        ({}, "its log says why"),
        ({"ran": {"0": 3}}, "its log says why"),
        ({"ran": {"0": 3}, "skips": True}, "before all engine steps of iterations.skip had run"),
        ({"by_stage": True}, "a stage that never came"),
    ],
)
def test_a_scheduler_without_a_trace_is_counted(notes, why):
    """With what is known of why, and the folder it should be in."""
    missing, _ = told(found=[trace(0, "prefill")], **notes)

    assert missing[0].startswith("1 of 2 schedulers left no trace in /tmp/x: ")
    assert why in missing[0]


@pytest.mark.parametrize(
    ("name", "beside", "stage"),
    [
        ("gs1-TP-0-EXTEND", (), "prefill"),
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
    _, idle = told(found=[trace(0, str(stage)), trace(1, "prefill"), trace(1, "decode")],
                   by_stage=True)  # fmt: skip
    unknown = "worker 0: one of the two stages was not recorded in the window"
    assert (unknown in idle) == (stage is None)
    assert len(idle) == 1
