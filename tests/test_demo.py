"""`make demo`, the whole way: a loop on Ray and vLLM, captured, laid on a timeline; and without.

Only the loop runs where vLLM is: what it leaves is read here.
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
"""How many tokens the two turns of a trajectory have."""
BOUND_S = 500


def show(folder, *, python=sys.executable):
    """Run `make demo` on a copy of the examples in *folder*, in the environment of *python*."""
    left_out = shutil.ignore_patterns("__pycache__", "outputs", ".*")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=left_out)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return in_a_group(["bash", str(folder / "examples/ray_rl/demo.sh"), str(python)], env=env)


def in_a_group(argv, **more):
    """Run *argv* to its end; what it has started ends with it, for vLLM leaves orphans."""
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
    """Run it once; return the run, what was shown, and the folder."""
    folder = tmp_path_factory.mktemp("demo")
    shown = show(folder, python=interpreter("vllm"))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    (run,) = (folder / "outputs/profile").iterdir()
    return rlprof.read(run), shown, folder


def test_every_chosen_window_is_whole(demo):
    """Two steps, two trainers, two engines and what is inside them: nothing skipped or lost."""
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
    """Rewards and the parameters of both trainers are bit-equal with rlprof and without."""
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
    """Two turns with a request each, a tool call, a reward; each request as vLLM counted it."""
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
    """Recorded or not: those of other steps come from Ray's own record of their calls."""
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


def test_the_timeline_holds_it_all(demo):
    """One file: phases, operators of trainers and workers, engine steps, requests, turns."""
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
    assert rows["shared"] == []  # no row of Perfetto's own, without a process
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


def test_it_says_why_a_step_takes_its_time_and_where_to_look(demo):
    """It is the slow tool; what a start or stop of ours ran into is no evidence."""
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


def test_without_vllm_the_other_loop_is_shown_and_that_is_said(tmp_path):
    """The reason stands before and after what is shown instead."""
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
