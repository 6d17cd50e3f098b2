"""A real verl loop with two workers and two vLLM replicas, recorded by verl's own keys."""

import gzip
import json
import re
from collections import Counter

import pytest

from tests.verl_real.same import is_as_asked
from tests.verl_real.training import train

STEPS = 3
SAMPLES = 8
"""Four prompts a step, two responses each."""
PHASES = ("old_log_prob", "ref", "update_actor", "update_weights")


@pytest.fixture(name="recorded", scope="module")
def _recorded(tmp_path_factory):
    """Record step 2 of a loop, by four keys of verl's and the tool."""
    return train("recorded", tmp_path_factory.mktemp("recorded"), STEPS)


def events(run, capture):
    (trace,) = [one for one in capture.artifacts if one.kind == "trace"]
    with gzip.open(run.path / trace.path) as file:
        return json.load(file)["traceEvents"]


def test_workers_and_replicas_are_recorded_whole(recorded):
    """All captures of four phases on two ranks, and of generation in two replicas, are whole."""
    run = recorded.run

    assert recorded.code == 0, recorded.log[-4000:]
    found = {(c.window.id, str(c.target), c.tool, c.state) for c in run.captures}
    assert found == {
        *((f"2/{phase}", f"actor {n}/2", "torch", "whole") for phase in PHASES for n in (0, 1)),
        *(("2/gen", f"rollout replica {n}", "vllm", "whole") for n in (0, 1)),
        *(("2/gen", f"rollout replica {n} worker 0", "torch", "whole") for n in (0, 1)),
    }  # fmt: skip
    assert all(map(is_as_asked, run.captures))
    assert {c.applied["record_shapes"] for c in run.captures if c.tool == "torch"} == {True}
    assert (run.skipped, run.missing, run.problems) == ((), (), ())
    assert {process.state for process in run.processes} == {"ended"}


def test_a_trace_holds_the_work_of_its_phase(recorded):
    """A trace has mini-batches only in the update, and engine steps only in generation."""
    for capture in recorded.run.captures:
        if capture.tool == "torch":
            names = Counter(event["name"] for event in events(recorded.run, capture))
            updates, generates = names["mini_batch0"], any("execute" in name for name in names)
            assert bool(updates) == (capture.window.phase == "update_actor")
            assert generates == (capture.window.phase == "gen")


def test_every_request_of_the_step_is_seen(recorded):
    """Each request of the step is in the trace of a replica, with its tokens."""
    found = [
        event["args"]["tokens"]
        for capture in recorded.run.captures
        if capture.tool == "vllm"
        for event in events(recorded.run, capture)
        if event["name"].startswith("request ")
    ]

    assert len(found) == SAMPLES
    assert all(1 <= tokens <= 32 for tokens in found)


def test_every_time_that_verl_logs_is_a_phase(recorded):
    """Each time that verl logs is a phase of that name, around verl's timer or within it."""
    driver = [span for span in recorded.run.spans() if span.target.role == "driver"]
    found = {(span.step, span.name): span for span in driver if span.kind == "phase"}

    assert set(recorded.steps) == {step for step, _ in found} == set(range(1, STEPS + 1))
    for step, data in recorded.steps.items():
        times = {key[9:]: data[key] for key in data if re.match(r"timing_s/\w+$", key)}
        assert {"gen", *PHASES} <= times.keys()
        for name in times.keys() - {"step"}:
            ours, last = found[step, name], "sleep" if name == "gen" else name
            seconds = (found[step, last].end_ns - ours.start_ns) / 1e9
            is_outside = name in ("gen", "update_weights")
            more = seconds / times[name] - 1
            assert more > -0.01 if is_outside else more < 0.01, (step, name, more)


def test_every_trajectory_is_seen(recorded):
    """Each trajectory has its call of the model, the loop around it, and its reward."""
    parts = [span for span in recorded.run.spans() if "trajectory" in span.attributes]

    assert len({part.attributes["trajectory"] for part in parts}) == STEPS * SAMPLES
    assert Counter(part.name for part in parts) == {
        "trajectory": STEPS * SAMPLES,
        "SingleTurnAgentLoop.run": STEPS * SAMPLES,
        "LLMServerClient.generate": STEPS * SAMPLES,
        "reward": STEPS * SAMPLES,
    }
