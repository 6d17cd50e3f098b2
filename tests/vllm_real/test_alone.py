"""A real AsyncLLM: windows by both ways, and faults of a live engine."""

import pytest

from tests.real_engines import KNOWN, counters_of
from tests.vllm_real.conftest import engine_steps, trace, traces_of, wall_ns
from tests.vllm_real.drivers.alone import LENGTHS

pytestmark = pytest.mark.slow
TOOL = {"worker": "torch", "native": "vllm"}


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    return drive("alone")


def model_trace(run, way, window):
    """Return the one trace of the engine's worker in a window."""
    found = [
        (capture, artifact)
        for capture, artifact in traces_of(run, TOOL[way], window)
        if "requests" not in artifact.path
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("step", LENGTHS)
@pytest.mark.parametrize("way", ["worker", "native"])
def test_a_trace_has_the_engine_steps_and_the_target_of_its_window(driven, way, step):
    """A trace has exactly the model's runs of its window, within the phase, and its target."""
    run = driven.run(way)
    ran = next(one["ran"] for one in driven.of(way) if one.get("step") == step)
    phases = {one.step: one for one in run.spans() if one.kind == "phase" and one.name == "rollout"}

    capture, artifact = model_trace(run, way, f"{step}/rollout")
    found = trace(run, artifact)
    header = found["rlprof"]
    times = [wall_ns(found, ts) for ts, _ in engine_steps(found)]

    assert ran == len(times)
    assert phases[step].start_ns < times[0] <= times[-1] < phases[step].end_ns
    assert capture.state == "whole"
    assert f"step_{step:06d}/rollout/rollout_replica_0/{TOOL[way]}" in artifact.path
    assert "pid" in artifact.path
    assert (header["target"]["role"], header["target"]["replica"]) == ("rollout", 0)
    assert {"tp": 0, "pp": 0}.items() <= header["target"]["coordinates"].items()
    assert header["window"]["start_step"] == step


def test_nothing_is_left_in_the_folder_of_the_engine(driven):
    """All files of vLLM's own profiler have moved to the run folder."""
    folders = list(driven.home.glob("rlprof-vllm-*/*"))

    assert len(folders) == 1
    assert [path.name for path in folders[0].iterdir() if "theirs" not in path.name] == []


@pytest.mark.parametrize(
    ("session", "way"), [("worker three", "worker"), ("native three", "native")]
)
def test_iterations_are_engine_steps(driven, session, way):
    """`skip: 2, count: 3` records the third to the fifth step of a window, or is unsupported."""
    run = driven.run(session)
    whole = driven.run(way)
    if way == "native" and not driven.has_sessions:
        (capture,) = run.captures
        assert "as it was launched to" in capture.unsupported["iterations"]
        return

    _, artifact = model_trace(run, way, "1/rollout")
    names = [name for _, name in engine_steps(trace(run, artifact))]

    # One request of 12 tokens, as step 4 of the first session had: the same steps, from the third.
    _, all_of_it = model_trace(whole, way, "4/rollout")
    assert [name for _, name in engine_steps(trace(whole, all_of_it))][2:5] == names
    captures = [one for one in run.captures if one.tool == "vllm"]
    assert dict(captures[0].asked["iterations"]) == {"skip": 2, "count": 3}


def test_counters_show_the_load_of_the_engine(driven):
    """Counters show three requests at a time, with no tool and no window."""
    found = counters_of(driven.run("counted"))

    busiest = max(found, key=lambda values: values["requests_running"])
    assert set(busiest) == KNOWN
    assert {busiest[name] for name in KNOWN - {"kv_cache_use", "requests_waiting"}} == {3}
    assert 0 < busiest["kv_cache_use"] < 1


# failures.md: vllm-cut
def test_windows_end_while_requests_go_on(driven):
    """Requests that outlive a window get all their tokens and are listed without an end."""
    run = driven.run("in flight")
    said = driven.of("in flight")[0]

    found = [artifact for _, artifact in traces_of(run, "vllm", "1/rollout")]
    requests = [
        event for event in trace(run, found[0])["traceEvents"]
        if event.get("cat") == "request" and event["name"].startswith("request ")
    ]  # fmt: skip

    assert said["tokens"] == [150, 150]
    assert {event["name"]: event["args"].get("finish") for event in requests} == {
        "request short-0": "length",
        "request lost": "abort",
        "request long-0": None,
        "request long-1": None,
    }
    assert [event["name"] for event in requests if "unfinished" in event["args"]] == [
        "request long-0",
        "request long-1",
    ]


# failures.md: vllm-cut, vllm-traces
def test_a_window_ends_where_weights_come(driven):
    """A load of weights ends the window after the steps so far, and the capture notes it."""
    run = driven.run("worker weights")

    capture, artifact = model_trace(run, "worker", "1/rollout")

    assert driven.of("worker weights")[0]["ran"] == len(engine_steps(trace(run, artifact)))
    why = "closed early: the engine was asked to load weights"
    assert any(why in note for note in capture.notes)
    for name in ("worker", "worker weights"):
        assert {one.state for one in driven.run(name).processes} == {"ended"}


# failures.md: vllm-asleep, vllm-profiled
@pytest.mark.parametrize(
    ("session", "why"), [("paused", "the engine is paused"), ("busy", "somebody else is profiling")]
)
def test_a_window_that_cannot_be_recorded_fails_with_the_reason(driven, session, why):
    """A window on a paused or profiled engine fails with the reason, and four tokens come."""
    captures = driven.run(session).captures

    if session == "busy" and not driven.has_sessions:  # nothing tells whose session runs
        assert driven.of(session)[0]["tokens"] == [4]
        return
    assert [capture.state for capture in captures] == ["failed"]
    assert any(why in note for note in captures[0].notes)
    assert driven.of(session)[0]["tokens"] == [4]
