"""Each rank's tables lie where msprof-analyze is told to look for those of its role."""

from __future__ import annotations

import errno
import os

import pytest

from rlprof import Capture, Target, Window
from rlprof_npu._cluster import join

WINDOW = Window(7, 8, "update_actor")
STEP = "step_000007/update_actor"
KEPT = ("profiler_info_3.json", "ASCEND_PROFILER_OUTPUT/step_trace_time.csv",
        "ASCEND_PROFILER_OUTPUT/trace_view.json")  # fmt: skip
TREE = "rank_20261122204800427_ascend_pt"


def joined(run, target, kept=KEPT):
    """Export *kept* for *target*; return what `join` says."""
    capture = Capture("run", target, WINDOW, "npu", "vm", 1)
    out = run / WINDOW.folder / target.folder / "npu"
    for name in kept:
        file = out / TREE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return join(capture, out, TREE, kept)


@pytest.mark.parametrize("has_links", [True, False])
def test_a_role_has_a_folder_of_its_own(tmp_path, monkeypatch, has_links):
    """What msprof-analyze reads lies there by the rank's name, hard-linked where that works."""

    def refuse(*_):
        raise OSError(errno.EPERM, "hard links are not known here")

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)

    found = joined(tmp_path, Target("actor", 3, 8))

    home = tmp_path / STEP / "actor_npu_cluster" / TREE
    assert found == (f"msprof-analyze cluster -d {{run}}/{STEP}/actor_npu_cluster", "")
    there = {str(file.relative_to(home)) for file in home.rglob("*") if file.is_file()}
    assert there == set(KEPT[:2])
    assert (home / KEPT[0]).read_text() == KEPT[0]
    assert (home / KEPT[0]).stat().st_nlink == 1 + has_links


@pytest.mark.parametrize(
    ("target", "kept", "folder"),
    [
        (Target("rollout", 0, 2, replica=1, worker=0), KEPT, f"{STEP}/rollout_replica_1"),
        (Target("actor", 3, 8), ("FRAMEWORK/torch.op_range", KEPT[0]), STEP),
    ],
    ids=["replica", "raw data"],
)
def test_what_has_its_place_stays_there(tmp_path, target, kept, folder):
    """The command names the folder of a replica, or that of the window for raw data."""
    found = joined(tmp_path, target, kept)

    assert found == (f"msprof-analyze cluster -d {{run}}/{folder}", "")
    assert not list(tmp_path.rglob("*_npu_cluster"))
