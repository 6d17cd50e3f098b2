"""Each rank's tables lie where msprof-analyze is told to look for those of its role."""

from __future__ import annotations

import errno
import os

from rlprof import Capture, Target, Window
from rlprof_npu._cluster import join

WINDOW = Window(7, 8, "update_actor")
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


def below(folder):
    """Name the files below *folder*."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_role_has_a_folder_of_its_own(tmp_path):
    """What an analysis of a cluster reads lies there under the rank's own name, at no cost."""
    command, problem = joined(tmp_path, Target("actor", 3, 8))

    home = tmp_path / "step_000007/update_actor/actor_npu_cluster"
    assert command == "msprof-analyze cluster -d {run}/step_000007/update_actor/actor_npu_cluster"
    assert problem == ""
    assert below(home) == [f"{TREE}/{name}" for name in sorted(KEPT[:2], key=str.lower)]
    assert (home / TREE / KEPT[0]).stat().st_nlink == 2


def test_a_replica_has_its_folder_already(tmp_path):
    """Of an engine's replica nothing is put elsewhere, and the command names its folder."""
    found = joined(tmp_path, Target("rollout", 0, 2, replica=1, worker=0))

    folder = "step_000007/update_actor/rollout_replica_1"
    assert found == (f"msprof-analyze cluster -d {{run}}/{folder}", "")
    assert not list(tmp_path.rglob("*_npu_cluster"))


def test_raw_data_stay_where_they_are(tmp_path):
    """Of a window that nobody has analysed the command names the window's folder."""
    found = joined(tmp_path, Target("actor", 3, 8), ("FRAMEWORK/torch.op_range", KEPT[0]))

    assert found == ("msprof-analyze cluster -d {run}/step_000007/update_actor", "")
    assert not list(tmp_path.rglob("*_npu_cluster"))


def test_without_hard_links_there_are_copies(tmp_path, monkeypatch):
    """On a file system that knows no hard links the tables are copied."""

    def refuse(*_):
        raise OSError(errno.EPERM, "hard links are not known here")

    monkeypatch.setattr(os, "link", refuse)

    _, problem = joined(tmp_path, Target("actor", 3, 8))

    home = tmp_path / "step_000007/update_actor/actor_npu_cluster"
    assert problem == ""
    assert (home / TREE / KEPT[0]).read_text() == KEPT[0]
