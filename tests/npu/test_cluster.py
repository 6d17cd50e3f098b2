"""Each rank's tables lie where msprof-analyze is told to look for those of its role."""

from __future__ import annotations

import errno
import os

import pytest

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


def test_an_export_done_again_leaves_what_the_last_has(tmp_path):
    """What an earlier export of this rank has left there is gone; that of others is not."""
    joined(tmp_path, Target("actor", 3, 8), (*KEPT, "ASCEND_PROFILER_OUTPUT/l2_cache.csv"))
    home = tmp_path / "step_000007/update_actor/actor_npu_cluster"
    (home / "other_20261122204800427_ascend_pt").mkdir()

    joined(tmp_path, Target("actor", 3, 8))

    assert "l2_cache.csv" not in str(below(home))
    assert (home / "other_20261122204800427_ascend_pt").is_dir()


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


def test_nothing_is_written_beside_a_folder_that_is_not_a_runs(tmp_path):
    """Exported to a place of another shape, a window has nothing put beside it."""
    capture = Capture("run", Target("actor", 3, 8), WINDOW, "npu", "vm", 1)

    found = join(capture, tmp_path / "out", TREE, KEPT)

    assert found == ("msprof-analyze cluster -d {run}/step_000007/update_actor", "")
    assert list(tmp_path.iterdir()) == []


def refusing(code):
    """Return what stands in for a call of the system that fails."""

    def call(*_, **__):
        raise OSError(code, os.strerror(code))

    return call


def test_without_hard_links_there_are_copies(tmp_path, monkeypatch):
    """On a file system that knows no hard links the tables are copied."""
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))

    _, problem = joined(tmp_path, Target("actor", 3, 8))

    home = tmp_path / "step_000007/update_actor/actor_npu_cluster"
    assert problem == ""
    assert (home / TREE / KEPT[0]).read_text() == KEPT[0]


# failures.md: npu-analysis
def test_a_rank_that_is_missing_there_is_said(tmp_path, monkeypatch):
    """Where neither can be had, it is said which folder lacks the rank, and why."""
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))
    monkeypatch.setattr("shutil.copyfile", refusing(errno.ENOSPC))

    _, problem = joined(tmp_path, Target("actor", 3, 8))

    assert problem == (
        "this rank is not, or not whole, in step_000007/update_actor/actor_npu_cluster: "
        "No space left on device"
    )


@pytest.mark.parametrize("name", ["actor/critic", "../actor"])
def test_a_role_of_any_name_stays_in_the_window(tmp_path, name):
    """What a role is called leads nowhere else."""
    joined(tmp_path, Target(name, 3, 8))

    (home,) = tmp_path.rglob("*_npu_cluster")
    assert home.parent == tmp_path / WINDOW.folder
