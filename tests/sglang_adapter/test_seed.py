"""verl's table of options (verl-project/verl #5025), row by row: what SGLang is asked for each."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from rlprof import Target, Window, Workers
from rlprof_sglang import Sglang, SglangOptions
from rlprof_sglang._facts import Facts
from rlprof_sglang._ways import unasked, way
from rlprof_testing._drive import structured
from tests.sglang_adapter.generations import engine
from tests.sglang_adapter.lab import NEW, OLD

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


def recorded(handle, asked, home):
    """Record a window of one answer with the options *asked*; return what was said, and the files.

    By the plugin's hooks, as core calls them: a whole session a row would take a minute.
    """
    options = structured(Sglang, asked | {"profiler_dir": str(home / "traces")})
    plugin, folder, workers = Sglang(), home / "window" / "raw", Workers()
    folder.mkdir(parents=True)
    (folder.parent / "capture.json").write_text('{"run_id": "a run"}')
    window, target = Window(7, 8, "rollout"), Target("rollout", 0, 1, replica=0)
    plugin.configure("process", options, handle, workers)
    said = plugin.start(window, target, folder, handle, workers)
    handle.generate("jest")
    plugin.stop(window, folder, workers)
    return said, sorted(path.name for path in (folder / "native").iterdir())


@pytest.mark.parametrize("release", [OLD, NEW], ids=["oldest", "newer"])
@pytest.mark.parametrize("row", TABLE.values(), ids=[*TABLE])
@pytest.mark.usefixtures("modules")
def test_each_row_is_asked_of_sglang(tmp_path, request, release, row):
    """In a folder of the window's own; its files are fetched.

    Stages are recorded only with our part in the schedulers.
    """
    if "profile_by_stage" in row.sent:
        request.getfixturevalue("inside")
    handle = engine(release, device="cuda", has_cuda=True)

    said, files = recorded(handle, row.asked, tmp_path)

    expected = ALWAYS | row.sent
    (sent,) = handle.tokenizer_manager.asked()
    folder, name = Path(sent.pop("output_dir")), sent.pop("profile_id", None)
    assert sent == expected
    assert (folder.parent, folder.name.partition("_")[0]) == (tmp_path / "traces", "step7")
    assert name == "gs7-r0"
    assert len(files) == 1 + ("profile_by_stage" in sent) + ("merge_profiles" in sent)
    notable = {"step_start", "step_end", "iterations"} & set(said.unsupported)
    assert notable == {row.told} - {""}
    assert handle.tokenizer_manager.replica.killed_by == ""


@pytest.mark.parametrize(
    ("contents", "chosen"), [(None, "worker"), ((), "worker"), (("cpu", "stack"), "native")]
)
def test_contents_choose_the_profiler_they_are_for(contents, chosen):
    """Inside they would mean nothing; an empty list is verl's default, and asks for nothing."""
    born_with_us = SimpleNamespace(facts=Facts("Engine", is_inside=True))

    assert way(SglangOptions(contents=contents), born_with_us, {"torch": {}}) == chosen


@pytest.mark.parametrize("is_inside", [False, True])
def test_sglangs_own_profiler_in_place_of_the_tool_is_reported(is_inside):
    """Where the engine was launched without us, and nobody has asked for that profiler."""
    launched = SimpleNamespace(facts=Facts("Engine", is_inside=is_inside))

    said = unasked(SglangOptions(), launched, {"torch": {}})

    assert [*said] == ([] if is_inside else ["tool: torch"])
