"""`make demo`, end to end: a loop on Ray and vLLM, recorded and exported; and one without them.

Only the loop runs in vLLM's environment; its run is read here.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

import rlprof
from rlprof_report import analyse
from tests.perfetto_engine import query_all, summary
from tests.real_engines import ROOT, interpreter

pytestmark = pytest.mark.slow

STEPS, QUESTIONS = 12, 32
LETTERS, WORDS = 8, 24
"""Tokens of the two turns of a trajectory."""
BOUND_S = 500


def show(folder, *, python=sys.executable):
    """Run `make demo` on a copy of the examples in *folder*, in the environment of *python*."""
    left_out = shutil.ignore_patterns("__pycache__", "outputs", ".*")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=left_out)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return in_a_group(["bash", str(folder / "examples/ray_rl/demo.sh"), str(python)], env=env)


def in_a_group(argv, **more):
    """Run *argv* to its end, and end everything it started, because vLLM leaves orphans."""
    child = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **more,
    )  # fmt: skip
    try:
        out, err = child.communicate(timeout=BOUND_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


@pytest.fixture(scope="module", name="demo")
def _demo(tmp_path_factory):
    """Run the demo once; return the run, its output and the folder."""
    folder = tmp_path_factory.mktemp("demo")
    shown = show(folder, python=interpreter("vllm"))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    (run,) = (folder / "outputs/profile").iterdir()
    return rlprof.read(run), shown, folder


def test_every_chosen_window_is_whole(demo):
    """Every chosen window of two steps, trainers and engines is whole, and none is skipped."""
    run, _, _ = demo

    captured = {(c.window.id, str(c.target), c.tool, c.state) for c in run.captures}
    assert captured == {
        (f"{step}/{phase}", target, tool, "whole")
        for step in (2, 4)
        for phase, tool, targets in (
            ("update_actor", "torch", ("actor 0/2", "actor 1/2")),
            ("rollout", "vllm", ("rollout replica 0", "rollout replica 1")),
            ("rollout", "torch", ("rollout replica 0 worker 0", "rollout replica 1 worker 0")),
        )
        for target in targets
    }
    assert (run.skipped, run.missing, run.problems) == ((), (), ())
    assert {str(process.target): process.state for process in run.processes} == {
        "driver 0/1": "ended", "actor 0/2": "ended", "actor 1/2": "ended", "agent 0/1": "ended",
        "rollout replica 0": "ended", "rollout replica 1": "ended",
        "rollout replica 0 worker 0": "ended", "rollout replica 1 worker 0": "ended",
    }  # fmt: skip
    for capture in run.captures:
        assert capture.artifacts
        for artifact in capture.artifacts:
            assert (run.path / artifact.path).stat().st_size == artifact.size


def test_training_learns_the_same(demo):
    """Rewards and parameters of both trainers are bit-equal with and without rlprof."""
    _, shown, folder = demo
    env = {k: v for k, v in os.environ.items() if not k.startswith("RLPROF_")}

    plain = in_a_group([str(interpreter("vllm")), "examples/ray_rl/train.py"], cwd=folder, env=env)

    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout in shown.stdout
    rewards = [float(reward) for reward in re.findall(r"reward (\S+)", plain.stdout)]
    assert len(rewards) == STEPS
    assert rewards[-1] > rewards[0] + 0.3
    (one, other) = re.search(r"parameters: (\w{16}) (\w{16})\n", plain.stdout).groups()
    assert one == other


def test_every_trajectory_is_recorded(demo):
    """Each trajectory has two turns with vLLM's token counts, a tool call and a reward."""
    run, _, _ = demo
    found = {}
    for span in run.spans():
        if "trajectory" in span.attributes:  # the garbage collector has spans, too
            found.setdefault(span.attributes["trajectory"], []).append(span)

    steps, numbers = range(1, STEPS + 1), range(QUESTIONS)
    assert set(found) == {f"{step}-{number}" for step in steps for number in numbers}
    for trajectory, spans in found.items():
        names = [span.name for span in spans]
        assert sorted(set(names)) == ["request", "reward", "tool_call", "trajectory", "turn"]
        assert (names.count("turn"), names.count("request")) == (2, 2)
        assert (names.count("tool_call"), names.count("reward")) == (1, 1)
        requests = [span.attributes for span in spans if span.name == "request"]
        assert [one["tokens"] for one in requests] == [LETTERS, WORDS]
        assert {one["replica"] for one in requests} == {int(trajectory.split("-")[1]) % 2}
        assert all(0 <= one["queued_s"] <= one["first_token_s"] for one in requests)


def test_trainers_and_replicas_have_phases_in_every_step(demo):
    """Trainers and replicas have their phases in every step, recorded or not."""
    run, _, _ = demo
    found = {}
    for span in run.spans():
        if span.kind == "phase":
            found.setdefault((span.target.role, span.target.rank, span.name), set()).add(span.step)

    steps = set(range(1, STEPS + 1))
    for rank in (0, 1):
        assert found["actor", rank, "update_actor"] == steps
        assert found["rollout", rank, "rollout"] == steps
        assert found["rollout", rank, "weight_sync"] == steps


def test_the_timeline_has_all_processes_and_threads(demo):
    """The timeline has phases, operators, engine steps and requests of every process."""
    run, _, _ = demo

    timeline = run.path / "exports/timeline.json.gz"
    seen = summary(timeline)
    assert seen.errors == {}
    assert {
        "step 2", "weight_sync", "rollout", "reward", "update_actor", "gloo:all_reduce",
        "queued", "prefill", "decode", "trajectory 2-7", "turn", "request", "tool_call calculator",
    } <= {*seen.slice_names}  # fmt: skip
    assert any(name.startswith("execute_context_") for name in seen.slice_names)
    rows = query_all(
        timeline,
        rows="""
            select p.name as process, t.name as thread, min(t.tid <> p.pid) as is_apart
            from thread_track join thread t using (utid) join process p using (upid)
            group by utid order by p.pid, t.tid
        """,
        shared="select name from track where type <> 'json_counter' and type not glob 'thread_*'",
    )
    assert rows["shared"] == []  # no track without a process
    assert all(row["process"] and row["thread"] and row["is_apart"] for row in rows["rows"])
    threads = {}
    for row in rows["rows"]:
        threads.setdefault(row["process"].split(" · ")[0], []).append(row["thread"])
    trainers, replicas = ("actor 0/2", "actor 1/2"), ("rollout replica 0", "rollout replica 1")
    rollouts = [name for replica in replicas for name in (replica, f"{replica} worker 0")]
    assert list(threads) == ["driver 0/1", *trainers, *rollouts, "agent 0/1"]
    assert len(seen.process_names) == len(threads)
    for target in (*trainers, *rollouts[1::2]):
        assert "phases" in threads[target]
        assert any(name.startswith("torch · thread ") for name in threads[target]), target
    for replica in replicas:
        assert {"phases", "vllm · request lane 1"} <= {*threads[replica]}


def test_the_demo_finds_the_slow_tool(demo):
    """The demo prints the verdict with the slow tool; steps that recording touched are left out."""
    run, shown, _ = demo

    found = analyse(run)

    assert "tool" in {finding.cause for finding in found.findings}
    left_out = {step for steps in found.clean.left_out.values() for step in steps}
    assert {2, 4} <= left_out
    assert len(found.clean.steps) >= STEPS // 2
    assert not left_out & {step for finding in found.findings for step in finding.steps}
    assert found.cost_s > 0
    assert " ".join(found.verdict.split()) in " ".join(shown.stdout.split())
    assert (run.path / "exports/report.html").stat().st_size > 10_000


NO_VLLM = "there is no vLLM here: ModuleNotFoundError: No module named 'vllm'"


def test_without_vllm_the_demo_runs_the_other_loop(tmp_path):
    """Without vLLM the demo runs the loop of examples/rl_loop and says why, first and last."""
    shown = show(tmp_path)

    assert shown.returncode == 0
    assert f"demo: {NO_VLLM}; here is the loop without an engine" in shown.stderr
    last = f"demo: this was the loop without an engine and Ray (examples/rl_loop): {NO_VLLM}"
    assert shown.stderr.strip().endswith(last)
    assert "torchrun --nproc-per-node 2 examples/rl_loop/train.py" in shown.stdout
    (run,) = (tmp_path / "outputs/profile").glob("[!.]*")
    found = rlprof.read(run)
    assert {(c.window.id, str(c.target), c.state) for c in found.captures} == {
        (f"{step}/{phase}", f"actor {rank}/2", "whole")
        for step in (2, 4) for phase in ("rollout", "update_actor") for rank in (0, 1)
    }  # fmt: skip
    assert (found.skipped, found.missing, found.problems) == ((), (), ())
    seen = summary(run / "exports/timeline.json.gz")
    assert (seen.errors, "gloo:all_reduce" in seen.slice_names) == ({}, True)
