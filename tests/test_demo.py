"""`make demo`, the whole way: a loop on Ray, captured, laid on a timeline; and without Ray."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import rlprof
from tests.perfetto_engine import query_all, summary

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
STEPS, QUESTIONS = 6, 32
SLACK_NS = 50_000_000
"""A wrong base is off by days, a busy machine by a few ms."""


@attrs.frozen
class Shown:
    """What a reader of the terminal has seen."""

    code: int
    out: str
    err: str


def show(folder, *, ci, path=""):
    """Run `make demo` on a copy of the examples in *folder*."""
    left_out = shutil.ignore_patterns("__pycache__", "outputs", ".*")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=left_out)
    env = {k: v for k, v in os.environ.items() if k not in {"CI", "PYTHONPATH"}}
    env |= {"CI": ci, "PYTHONPATH": str(path)}
    argv = ["bash", str(folder / "examples/ray_rl/demo.sh"), sys.executable]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=400)
    return Shown(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module", name="demo")
def _demo(tmp_path_factory):
    """Run it once; return the run, what was shown, and the folder."""
    folder = tmp_path_factory.mktemp("demo")
    shown = show(folder, ci="1")
    assert shown.code == 0, shown.out + shown.err
    (run,) = (folder / "outputs/profile").iterdir()
    return rlprof.read(run), shown, folder


@pytest.fixture(scope="module", name="no_ray")
def _no_ray(tmp_path_factory):
    """Return a folder that hides Ray."""
    folder = tmp_path_factory.mktemp("no_ray")
    (folder / "ray.py").write_text("raise ImportError('there is no Ray here')\n")
    return folder


def test_every_chosen_window_is_whole(demo):
    """Two steps, two trainers and two replicas: all in one run folder, nothing skipped or lost."""
    run, _, _ = demo

    captured = {(c.window.id, str(c.target), c.tool, c.state) for c in run.captures}
    assert captured == {
        (f"{step}/{phase}", target, tool, "whole")
        for step in (2, 4)
        for phase, tool, targets in (
            ("update_actor", "torch", ("actor 0/2", "actor 1/2")),
            ("rollout", "mini", ("rollout replica 0", "rollout replica 1")),
        )
        for target in targets
    }
    assert (run.skipped, run.missing, run.problems) == ((), (), ())
    assert {str(process.target): process.state for process in run.processes} == {
        "driver 0/1": "ended", "actor 0/2": "ended", "actor 1/2": "ended", "agent 0/1": "ended",
        "rollout replica 0": "ended", "rollout replica 1": "ended",
    }  # fmt: skip
    for capture in run.captures:
        (artifact,) = capture.artifacts
        assert (run.path / artifact.path).stat().st_size == artifact.size


def test_what_was_asked_was_applied(demo):
    """The trainers record shapes, as the config asks; nothing was asked that could not be."""
    run, _, _ = demo

    for capture in run.captures:
        assert (capture.unsupported, capture.notes) == ({}, ())
        if capture.tool == "torch":
            assert capture.asked == {"contents": ["cpu", "shapes"]}
            assert capture.applied["record_shapes"] is True


def test_training_learns_the_same(demo):
    """Rewards and the parameters of both trainers are bit-equal with rlprof and without."""
    _, shown, folder = demo
    env = {k: v for k, v in os.environ.items() if not k.startswith("RLPROF_")}
    env["PYTHONPATH"] = str(EXAMPLES / "third_party_engine/src")

    plain = subprocess.run(
        [sys.executable, "examples/ray_rl/train.py"],
        cwd=folder, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout in shown.out
    rewards = [float(reward) for reward in re.findall(r"reward (\S+)", plain.stdout)]
    assert len(rewards) == STEPS
    assert rewards[-1] > rewards[0] + 0.3
    (one, other) = re.search(r"parameters: (\w{16}) (\w{16})\n", plain.stdout).groups()
    assert one == other


def test_every_trajectory_is_recorded(demo):
    """The agent's spans: two turns with a request each, a tool call, a reward; by trajectory."""
    run, _, _ = demo
    found = {}
    for span in run.spans():
        if span.target.role == "agent" and span.kind == "span":
            found.setdefault(span.attributes["trajectory"], []).append(span.name)

    steps, numbers = range(1, STEPS + 1), range(QUESTIONS)
    assert set(found) == {f"{step}-{number}" for step in steps for number in numbers}
    for names in found.values():
        assert sorted(set(names)) == ["request", "reward", "tool_call", "trajectory", "turn"]
        assert (names.count("turn"), names.count("request")) == (2, 2)
        assert (names.count("tool_call"), names.count("reward")) == (1, 1)


def test_the_timeline_holds_it_all(demo):
    """One file: phases, operators of both trainers with their collective, iterations, turns."""
    run, _, _ = demo

    timeline = run.path / "exports/timeline.json.gz"
    seen = summary(timeline)
    assert seen.errors == {}
    assert {
        "step 2", "weight_sync", "rollout", "reward", "update_actor", "gloo:all_reduce",
        "iteration", "trajectory 2-7", "turn", "request", "tool_call",
    } <= {*seen.slice_names}  # fmt: skip
    for target in ("driver 0/1", "actor 0/2", "actor 1/2", "rollout", "agent 0/1"):
        assert any(name.startswith(target) for name in seen.process_names), target
    assert sum(" · mini" in name for name in seen.process_names) == 2


def test_the_driver_and_its_members_are_on_one_clock(demo):
    """On the timeline the update of each trainer lies within that of the driver."""
    run, _, _ = demo

    rows = query_all(
        run.path / "exports/timeline.json.gz",
        phases="""
            select slice.ts as ts, slice.dur as dur, process.name as process
            from slice join thread_track on slice.track_id = thread_track.id
            join thread using (utid) join process using (upid)
            where slice.name = 'update_actor' order by slice.ts
        """,
    )["phases"]

    driver = [row for row in rows if row["process"].startswith("driver")]
    traces = [row for row in rows if "torch" in row["process"]]
    assert (len(driver), len(traces)) == (STEPS, 4)
    for found in traces:
        assert any(
            one["ts"] - SLACK_NS < found["ts"] < one["ts"] + one["dur"] + SLACK_NS
            for one in driver
        )  # fmt: skip


def test_it_says_what_it_does_and_where_to_look(demo):
    """Each command stands above what it prints; of Ray nothing is heard."""
    run, shown, folder = demo
    name = run.path.relative_to(folder)
    typed = re.findall(r"\$ (.*)\x1b", shown.out)

    assert [" ".join(line.split()[:2]) for line in typed] == [
        "rlprof check", "rlprof plan", "python examples/ray_rl/train.py", "rlprof ls",
        "rlprof export",
    ]  # fmt: skip
    assert f"Open {name}/exports/timeline.json.gz in https://ui.perfetto.dev" in shown.out
    assert shown.err == f"driver 0/1: writes to {run.path}\n"


def test_the_environment_stays_as_it_was(demo):
    """The engine was installed for the demo alone."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    done = subprocess.run(
        [sys.executable, "-c", "import mini_engine"], env=env, capture_output=True, text=True
    )

    assert "No module named 'mini_engine'" in done.stderr


def test_without_ray_the_other_loop_is_shown_and_that_is_said(tmp_path, no_ray):
    """The reason stands before and after what is shown instead."""
    shown = show(tmp_path, ci="", path=no_ray)

    reason = "Ray cannot start: ImportError: there is no Ray here"
    assert shown.code == 0
    assert f"demo: {reason}; here is the loop without Ray instead" in shown.err
    last = shown.err.strip().splitlines()[-1]
    assert f"demo: this was the loop without Ray (examples/rl_loop). {reason}" in last
    assert "torchrun --nproc-per-node 2 examples/rl_loop/train.py" in shown.out
    (run,) = (tmp_path / "outputs/profile").iterdir()
    assert {c.state for c in rlprof.read(run).captures} == {"whole"}
    assert (run / "exports/timeline.json.gz").exists()


def test_without_ray_ci_fails(tmp_path, no_ray):
    """Nothing is shown instead, and no run is left."""
    shown = show(tmp_path, ci="1", path=no_ray)

    assert shown.code == 1
    assert "there is no Ray here; under CI that is an error" in shown.err
    assert "torchrun" not in shown.out
    assert not (tmp_path / "outputs").exists()
