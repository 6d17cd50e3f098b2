"""`make demo`, the whole way: a loop on Ray and vLLM, captured, laid on a timeline; and without.

Only the loop runs where vLLM is: what it leaves is read here.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

import rlprof
from rlprof_report import analyse
from tests.perfetto_engine import query_all, summary

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
VLLM = ROOT / ".envs/vllm/bin/python"
STEPS, QUESTIONS = 12, 32
LETTERS, WORDS = 8, 24
"""How many tokens the two turns of a trajectory have."""
BOUND_S = 500
SLACK_NS = 50_000_000
"""A wrong base is off by days, a busy machine by a few ms."""


@attrs.frozen
class Shown:
    """What a reader of the terminal has seen."""

    code: int
    out: str
    err: str


def show(folder, *, ci, python=sys.executable, path=""):
    """Run `make demo` on a copy of the examples in *folder*, in the environment of *python*."""
    left_out = shutil.ignore_patterns("__pycache__", "outputs", ".*")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=left_out)
    env = {k: v for k, v in os.environ.items() if k not in {"CI", "PYTHONPATH"}}
    env |= {"CI": ci, "PYTHONPATH": str(path)}
    done = in_a_group(["bash", str(folder / "examples/ray_rl/demo.sh"), str(python)], env=env)
    return Shown(done.returncode, done.stdout, done.stderr)


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


@pytest.fixture(scope="module", name="vllm")
def _vllm():
    """Return the interpreter that has vLLM; skip where none can be had, which CI can."""
    if not VLLM.exists():
        why = "there is no .envs/vllm; `make env-vllm` makes it, or says why it cannot be made"
        (pytest.fail if os.environ.get("CI", "0") not in {"", "0", "false"} else pytest.skip)(why)
    return VLLM


@pytest.fixture(scope="module", name="demo")
def _demo(tmp_path_factory, vllm):
    """Run it once; return the run, what was shown, and the folder."""
    folder = tmp_path_factory.mktemp("demo")
    shown = show(folder, ci="1", python=vllm)
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


def test_what_was_asked_was_applied(demo):
    """Trainers and workers record shapes, as the config asks; all that was asked could be."""
    run, _, _ = demo

    for capture in run.captures:
        assert (capture.unsupported, capture.notes) == ({}, ())
        if capture.tool == "torch":
            assert capture.asked == {"contents": ["cpu", "shapes"]}
            assert capture.applied["record_shapes"] is True
        else:
            assert capture.applied == {"way": "worker", "workers": [0]}


def test_the_engines_show_what_they_did(demo):
    """Each window has the engine steps of its own worker, and every request with its tokens."""
    run, _, _ = demo

    for capture in run.captures:
        traces = [artifact for artifact in capture.artifacts if artifact.kind == "trace"]
        assert len(traces) == 1
        with gzip.open(run.path / traces[0].path) as file:
            events = json.load(file)["traceEvents"]
        if capture.tool == "vllm":
            asked = [event for event in events if event["name"].startswith("request ")]
            tokens = [event["args"]["tokens"] for event in asked]
            assert sorted(tokens) == sorted([LETTERS, WORDS] * (QUESTIONS // 2))
        elif capture.target.worker is not None:
            ran = [event for event in events if event["name"].startswith("execute_context_")]
            assert len(ran) >= LETTERS + WORDS


def test_training_learns_the_same(demo, vllm):
    """Rewards and the parameters of both trainers are bit-equal with rlprof and without."""
    _, shown, folder = demo
    env = {k: v for k, v in os.environ.items() if not k.startswith("RLPROF_")}

    plain = in_a_group([str(vllm), "examples/ray_rl/train.py"], cwd=folder, env=env)

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
        if "trajectory" in span.attributes:  # the garbage collector has spans, too
            found.setdefault(span.attributes["trajectory"], []).append(span.name)

    steps, numbers = range(1, STEPS + 1), range(QUESTIONS)
    assert set(found) == {f"{step}-{number}" for step in steps for number in numbers}
    for names in found.values():
        assert sorted(set(names)) == ["request", "reward", "tool_call", "trajectory", "turn"]
        assert (names.count("turn"), names.count("request")) == (2, 2)
        assert (names.count("tool_call"), names.count("reward")) == (1, 1)


def test_every_request_says_which_replica_wrote_how_many_tokens(demo):
    """As vLLM itself counted them; and how long they waited there."""
    run, _, _ = demo
    found = {}
    for span in run.spans():
        if span.name == "request":
            found.setdefault(span.attributes["trajectory"], []).append(span.attributes)

    for trajectory, requests in found.items():
        number = int(trajectory.split("-")[1])
        assert [one["tokens"] for one in requests] == [LETTERS, WORDS]
        assert {one["replica"] for one in requests} == {number % 2}
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
        "queued", "prefill", "decode", "trajectory 2-7", "turn", "request", "tool_call",
    } <= {*seen.slice_names}  # fmt: skip
    assert any(name.startswith("execute_context_") for name in seen.slice_names)
    for target in ("driver 0/1", "actor 0/2", "actor 1/2", "agent 0/1"):
        assert any(name.startswith(target) for name in seen.process_names), target
    for replica in ("rollout replica 0", "rollout replica 1"):
        assert f"{replica} · vllm · requests" in seen.process_names
        assert any(name.startswith(f"{replica} worker 0 · torch") for name in seen.process_names)


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
    traces = [row for row in rows if re.match("actor .* torch", row["process"])]
    assert (len(driver), len(traces)) == (STEPS, 4)
    for found in traces:
        assert any(
            one["ts"] - SLACK_NS < found["ts"] < one["ts"] + one["dur"] + SLACK_NS
            for one in driver
        )  # fmt: skip


def test_it_says_what_it_does_and_where_to_look(demo):
    """Each command stands above its output; Ray is silent, and a pipe gets no colours."""
    run, shown, folder = demo
    name = run.path.relative_to(folder)
    typed = re.findall(r"^\$ (.*)$", shown.out, re.MULTILINE)

    assert "\x1b" not in shown.out
    assert [" ".join(line.split()[:2]) for line in typed] == [
        "rlprof check", "rlprof plan", "python examples/ray_rl/train.py", "rlprof ls",
        "rlprof export", "rlprof why",
    ]  # fmt: skip
    assert f"Open {name}/exports/timeline.json.gz in https://ui.perfetto.dev" in shown.out
    assert f"Open {name}/exports/report.html in a browser" in shown.out
    assert shown.err.splitlines() == [
        f"driver 0/1: writes to {run.path}",
        f"rlprof: records into {name}",
        f"rlprof: 6 windows recorded; look at the run with: rlprof ls {name}",
    ]


def test_it_says_why_a_step_takes_its_time_and_blames_nothing_for_recording(demo):
    """What was recorded, and what a start or stop of ours ran into, is no evidence."""
    run, shown, _ = demo

    found = analyse(run)

    left_out = {step for steps in found.clean.left_out.values() for step in steps}
    assert {2, 4} <= left_out
    assert len(found.clean.steps) >= STEPS // 2
    assert not left_out & {step for finding in found.findings for step in finding.steps}
    assert found.cost_s > 0
    assert " ".join(found.verdict.split()) in " ".join(shown.out.split())
    assert (run.path / "exports/report.html").stat().st_size > 10_000


@pytest.fixture(scope="module", name="toy")
def _toy(tmp_path_factory):
    """Run it once in an environment that has no vLLM; return the run and what was shown."""
    folder = tmp_path_factory.mktemp("toy")
    shown = show(folder, ci="")
    assert shown.code == 0, shown.out + shown.err
    (run,) = (folder / "outputs/profile").iterdir()
    return rlprof.read(run), shown


def test_without_vllm_the_engine_is_a_toy_and_that_is_said(toy):
    """The same loop, captured by another engine's plugin; the reason stands first and last."""
    run, shown = toy

    reason = "there is no vLLM here: ModuleNotFoundError: No module named 'vllm'"
    assert f"demo: {reason}; the engine is a toy instead" in shown.err
    last = shown.err.strip().splitlines()[-1]
    assert f"the engine was a toy (examples/third_party_engine): {reason}" in last
    assert {(str(c.target), c.tool, c.state) for c in run.captures} == {
        ("actor 0/2", "torch", "whole"), ("actor 1/2", "torch", "whole"),
        ("rollout replica 0", "mini", "whole"), ("rollout replica 1", "mini", "whole"),
    }  # fmt: skip
    assert (run.skipped, run.missing, run.problems) == ((), (), ())
    assert (run.path / "exports/timeline.json.gz").exists()
    rewards = [float(reward) for reward in re.findall(r"reward (\S+)", shown.out)]
    assert rewards[-1] > rewards[0] + 0.3


def test_without_vllm_ci_fails(tmp_path):
    """Nothing is shown instead, and no run is left."""
    shown = show(tmp_path, ci="1")

    assert shown.code == 1
    assert "there is no vLLM here" in shown.err
    assert "under CI that is an error" in shown.err
    assert not (tmp_path / "outputs").exists()


@pytest.mark.usefixtures("toy")
def test_the_environment_stays_as_it_was():
    """The toy was installed for the demo alone."""
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
    (run,) = (tmp_path / "outputs/profile").glob("[!.]*")
    assert {c.state for c in rlprof.read(run).captures} == {"whole"}
    assert (run / "exports/timeline.json.gz").exists()


def test_without_ray_ci_fails(tmp_path, no_ray, vllm):
    """Nothing is shown instead, and no run is left."""
    shown = show(tmp_path, ci="1", python=vllm, path=no_ray)

    assert shown.code == 1
    assert "there is no Ray here; under CI that is an error" in shown.err
    assert "torchrun" not in shown.out
    assert not (tmp_path / "outputs").exists()
