"""The real SGLang with changed names: no session leaks, and each loss has a reason."""

import importlib.util
import os
from pathlib import Path

import pytest

from tests.edited.copies import Edit, edited
from tests.sglang_real.conftest import ROOT, STAND_INS, _drive, _model, _plugin  # noqa: F401

pytestmark = pytest.mark.slow
PART = "srt/managers/scheduler_components/profiler_manager.py"
ALL = "srt/**/*.py"
CASES = {
    "as it is": ([], "whole", ""),
    "the profiler's handler renamed": (
        [Edit(PART, r"def _profile\(", "def _handle("),
         Edit("srt/managers/scheduler.py", r"manager\._profile\(", "manager._handle(")],
        "whole", "has no SchedulerProfilerManager._profile",
    ),
    "the profiler's stop renamed": (
        [Edit(PART, r"\b_stop_profile\b", "_end_profile")],
        "whole", "has no SchedulerProfilerManager._stop_profile",
    ),
    "run_batch renamed": (
        [Edit(ALL, r"\brun_batch\(", "run_one_batch(")], "whole", "has no Scheduler.run_batch",
    ),
    "requests leave by pop": (
        [Edit("srt/managers/tokenizer_manager.py", r"del self\.rid_to_state\[(.*?)\]\n",
              r"self.rid_to_state.pop(\1)\n")],
        "whole", "",
    ),
    "the state's method renamed": (
        [Edit("srt/managers/scheduler.py", r"\bget_internal_state\b", "say_state")],
        "whole", "is not in its schedulers",
    ),
    "the predicate renamed": (
        [Edit(ALL, r"\b_profile_batch_predicate\b", "_count_batch")], "whole", "",
    ),
}  # fmt: skip
NATIVE = {
    "start_profile renamed": (
        [Edit("srt/managers/*.py", r"\bstart_profile\b", "start_recording")],
        "failed", "TokenizerManager is not an engine: it has no start_profile",
    ),
    "activities renamed": (
        [Edit("srt/managers/**/*.py", r"\bactivities\b", "what")],
        "failed", "Unexpected keyword argument 'activities'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES | NATIVE)
def test_a_changed_release_is_recorded_or_says_why_not(case, drive, plugin, tmp_path):
    """Requests are answered, each window has its steps or a reason, and no session stays open."""
    edits, state, words = (CASES | NATIVE)[case]
    package = Path(importlib.util.find_spec("sglang").origin).parent
    assert edited(package, tmp_path, edits) or not edits

    path = os.pathsep.join(map(str, (tmp_path, STAND_INS, plugin, ROOT)))
    way = "native" if case in NATIVE else "auto"
    driven = drive("edited", env={"PYTHONPATH": path, "WAY": way}, case=case)

    assert driven.told[0]["sglang"].startswith(str(tmp_path))
    assert [one["tokens"] for one in driven.told if "tokens" in one] == [[3, 4]] * 3
    assert not any(driven.told[-2]["profiling"])
    captures = driven.run("edited").captures
    said = [
        text
        for one in captures
        for text in (*one.notes, *one.unsupported.values(), *(a.note for a in one.artifacts))
    ]
    assert {one.state for one in captures if one.tool == "sglang"} == {state}
    assert any(words in one for one in said), said
    assert not any("idle" in one for one in said)
