"""A plugin that crashes: in a helper process nobody minds, in training nobody can survive it."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.slow

TRAIN = """
with open_session() as prof:
    train(prof, between=lambda step: step == 1 and settle(prof, 1))
"""


# failures.md: crash
@pytest.mark.parametrize("hook", ["start", "stop"])
@pytest.mark.parametrize("tool", ["faulty", "anywhere"])
def test_a_tool_that_crashes_in_training_takes_it_along(lab, tool, hook):
    """A thread of its own is no shelter; what was exported is whole, and the window is lost."""
    broken = {tool: {"hook": hook, "how": "crash"}}

    told = lab.both(TRAIN, model="floats", tool=tool, tools=broken, cut=1)

    assert told.real.code == -signal.SIGSEGV
    assert told.captures == [f"1/update {tool} whole", f"2/update {tool} lost"]
    assert told.processes == ["actor 0/1 died"]
    assert told.problems == []


# failures.md: export-failed
def test_an_export_that_crashes_spoils_its_own_capture(lab):
    """It has a process of its own: the raw data stay, and how the helper ended is said."""
    broken = {"faulty": {"hook": "export", "how": "crash"}}

    told = lab.both(TRAIN, tool="faulty", tools=broken)

    assert told.captures == [
        f"{step}/update faulty {state}"
        for step, state in enumerate(["whole", "failed", "whole"], 1)
    ]
    assert told.processes == ["actor 0/1 ended"]
    assert "export: the helper process ended with -11: " in told.notes[0]
    assert told.problems == []
    assert len(told.log) == 1
