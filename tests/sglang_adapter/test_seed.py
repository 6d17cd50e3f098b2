"""verl's table of options (verl-project/verl #5025), row by row: what SGLang is asked for each."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tests.sglang_adapter.generations import engine
from tests.sglang_adapter.lab import NEW, OLD, states, traces_of

pytestmark = pytest.mark.usefixtures("modules")

ALWAYS = {"activities": ["CPU", "GPU"], "with_stack": False, "record_shapes": False}
"""What is asked where nothing is said: neither stacks nor shapes, and all steps of a window."""


@attrs.frozen
class Row:
    """A row of the table."""

    asked: dict
    """In verl's words; what is not there is left at its default."""
    sent: dict
    """What differs from `ALWAYS`."""
    told: str = ""
    """The option whose meaning here is not that of SGLang, which is said."""


STAGES = {"profile_by_stage": True, "num_steps": 10}
TABLE = {
    "defaults": Row({}, {}),
    "start and end": Row({"step_start": 0, "step_end": 1}, {"num_steps": 1}, "step_start"),
    "start alone": Row({"step_start": 0}, {}, "step_start"),
    "end alone": Row({"step_end": 1}, {"num_steps": 1}, "step_end"),
    "a longer one": Row({"step_start": 1, "step_end": 6}, {"num_steps": 5}, "step_start"),
    "by stage": Row({"contents": ["profile-by-stage"]}, STAGES, "iterations"),
    "by stage, bounded": Row({"contents": ["profile-by-stage"], "step_end": 3},
                             STAGES | {"num_steps": 2}, "step_end"),
    "merged": Row({"contents": ["merge-profiles"]}, {"merge_profiles": True}),
    "stacks": Row({"contents": ["stack"]}, {"with_stack": True, "num_steps": 10}, "iterations"),
    "shapes": Row({"contents": ["shapes"]}, {"record_shapes": True}),
    "no contents": Row({"contents": []}, {}),
    "cpu": Row({"contents": ["cpu"]}, {"activities": ["CPU"]}),
    "cuda": Row({"contents": ["cuda"]}, {"activities": ["GPU"]}),
    "cpu and cuda": Row({"contents": ["cpu", "cuda"]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("release", [OLD, NEW], ids=["keywords", "object"])
@pytest.mark.parametrize("row", TABLE.values(), ids=[*TABLE])
def test_each_row_is_asked_of_sglang(lab, release, row):
    """The words of its release, a folder of the window's own, and a whole capture.

    Before 0.5.16 SGLang records a step less than it is asked for, so it is asked for one more.
    """
    handle = engine(release)

    run = lab.train(handle, steps=(7,), **row.asked)

    expected = ALWAYS | row.sent
    if "num_steps" in row.sent and "profile_by_stage" not in row.sent:
        expected["num_steps"] += release == OLD
    (sent,) = handle.tokenizer_manager.asked()
    folder, name = Path(sent.pop("output_dir")), sent.pop("profile_id", None)
    assert sent == expected
    assert (folder.parent, folder.name.partition("_")[0]) == (lab.traces, "step7")
    assert name == ("gs7-r0" if release == NEW else None)
    assert states(run) == ["whole"]
    assert len(traces_of(run, 0)) == (2 if "profile_by_stage" in row.sent else 1)
    told = set(run.captures[0].unsupported) - {"requests: queued, prefill"}
    assert {row.told} - {""} <= told
    assert handle.tokenizer_manager.replica.killed_by == ""
