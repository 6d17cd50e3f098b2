"""The loop without Ray, the whole way: two ranks under torchrun, from config to a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import rlprof
from rlprof_cli import main
from tests.perfetto_engine import query_all, summary

pytestmark = pytest.mark.slow

DEMO = Path(__file__).parent.parent / "examples/rl_loop"


@pytest.fixture(scope="module", name="demo")
def _demo(tmp_path_factory):
    """Train twice, with and without rlprof; return the run and what both printed."""
    folder = tmp_path_factory.mktemp("demo")
    config = yaml.safe_load((DEMO / "profile.yaml").read_text())
    config |= {"run_dir": str(folder / "runs"), "scratch_dir": str(folder / "scratch")}
    (folder / "profile.yaml").write_text(yaml.safe_dump(config))
    printed = []
    for args in (["--config", str(folder / "profile.yaml")], []):
        result = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
             str(DEMO / "train.py"), *args],
            capture_output=True, text=True, timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        printed.append(result.stdout)
    (run,) = (folder / "runs").glob("[!.]*")
    return rlprof.read(run), printed


def test_every_chosen_window_of_every_rank_is_whole(demo):
    """Two steps, two phases, two ranks: eight captures, all whole, nothing skipped or missing."""
    run, _ = demo

    captured = {(c.window.id, str(c.target), c.state) for c in run.captures}
    assert captured == {
        (f"{step}/{phase}", f"actor {rank}/2", "whole")
        for step in (2, 4)
        for phase in ("rollout", "update_actor")
        for rank in (0, 1)
    }
    assert (run.skipped, run.missing, run.problems) == ((), (), ())
    assert [process.state for process in run.processes] == ["ended", "ended"]


def test_training_learns_the_same(demo):
    """Rewards of all steps are equal, digit by digit, with and without profiling."""
    _, (profiled, plain) = demo

    assert profiled == plain
    assert profiled.count("reward") == 6


def test_the_timeline_holds_it_all_on_one_clock(demo):
    """Tracks, phases and collectives of both ranks; a phase's span and range coincide."""
    run, _ = demo
    timeline = run.path / "exports/timeline.json.gz"

    code = main(["export", str(run.path), "--to", "timeline"])

    seen = summary(timeline)
    assert (code, seen.errors) == (0, {})
    assert {"step 2", "rollout", "reward", "update_actor", "score", "aten::mm"} <= {
        *seen.slice_names
    }
    assert any(name.startswith("gloo:all_reduce") for name in seen.slice_names)
    rows = query_all(
        timeline,
        phases="""
            select slice.ts as ts, slice.dur as dur, process.name as process, thread.name as thread
            from slice join thread_track on slice.track_id = thread_track.id
            join thread using (utid) join process using (upid)
            where slice.name = 'update_actor' order by slice.ts
        """,
    )["phases"]

    spans = [row for row in rows if row["thread"] == "phases"]
    ranges = [row for row in rows if str(row["thread"]).startswith("torch · thread ")]
    assert len(spans) == 12
    assert len(ranges) == 4
    for found in ranges:
        near = [span for span in spans if span["process"] == found["process"]]
        gap = min(abs(span["ts"] - found["ts"]) for span in near)
        assert gap < found["dur"] + 10**9  # a wrong base is off by days, not by a second
