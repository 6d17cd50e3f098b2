"""A real LLM in the process that holds it: the options of verl's users, and other profilers."""

import pytest

from tests.real_engines import KNOWN, counters_of
from tests.vllm_real.conftest import engine_steps, trace, traces_of
from tests.vllm_real.tiny import TABLE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    return drive("within")


@pytest.mark.parametrize(("way", "stack", "shapes", "ranks"), TABLE)
def test_verls_options_mean_what_they_mean_there(driven, way, stack, shapes, ranks):
    """Stacks, shapes, step 2, rank 1 or all: what was asked is in the trace, or said not to be."""
    run = driven.run(f"{way} {stack} {shapes} {ranks}")

    found = traces_of(run, "torch" if way == "worker" else "vllm", "2/rollout")

    capture, artifact = next(one for one in found if "requests" not in one[1].path)
    events = trace(run, artifact)["traceEvents"]
    assert {2} == {one.window.start_step for one in run.captures}
    assert capture.target.rank == 1
    assert len(engine_steps({"traceEvents": events})) == 5
    has_stacks = any(event.get("cat") == "python_function" for event in events)
    has_shapes = any("Input Dims" in event.get("args", {}) for event in events)
    told = set(capture.unsupported)
    unsaid = {"contents: stack": stack, "contents: shapes": shapes}
    if way == "worker":
        assert (stack, shapes) == (has_stacks, has_shapes)
        assert told == set()
    else:  # it was launched with neither
        assert (has_stacks, has_shapes) == (False, False)
        assert {name for name, asked in unsaid.items() if asked} == told


# failures.md: vllm-profiled
@pytest.mark.parametrize("way", ["worker", "native"])
def test_a_profiler_of_the_processs_own_is_left_alone(driven, way):
    """The window is refused with the reason; the other profiler has its events, and all live."""
    told = driven.of(f"{way} beside another")
    run = driven.run(f"{way} beside another")

    failed = [capture for capture in run.captures if capture.state == "failed"]

    assert len(failed) == 1
    assert any("another torch profiler is active" in note for note in failed[0].notes)
    assert told[0]["tokens"] == [5, 3]
    assert told[1]["events"] > 100


# failures.md: vllm-refused
def test_any_tool_records_inside_the_worker(driven):
    """A stranger's tool leaves its trace; one that needs a GPU says so; counters are read there."""
    run = driven.run("any tool")

    found = {c.tool: c for c in run.captures}

    assert found["stacks"].state == "whole"
    assert (found["stacks"].target.replica, found["stacks"].target.worker) == (1, 0)
    assert any(artifact.kind == "trace" for artifact in found["stacks"].artifacts)
    assert found["torch_memory"].state == "failed"
    assert any("CUDA" in note for note in found["torch_memory"].notes)
    assert driven.of("any tool")[0]["tokens"] == [5, 3]
    counters = counters_of(run)  # of two requests, which it runs in one batch
    assert {frozenset(values) for values in counters} == {frozenset(KNOWN)}
    assert all(one["batch_size"] == one["requests_running"] <= 2 for one in counters)


def test_training_and_generation_in_one_process_are_both_recorded(driven):
    """Each in its own phase, by a session of its own: the trainer's and the worker's."""
    run = driven.run("training")

    found = {(c.window.id, str(c.target), c.tool): c.state for c in run.captures}

    assert {
        (f"{step}/{phase}", target, tool): "whole"
        for step in (1, 2)
        for phase, target, tool in (
            ("rollout", "rollout replica 0", "vllm"),
            ("rollout", "rollout replica 0 worker 0", "torch"),
            ("update", "actor 0/1", "torch"),
        )
    } == found
    assert driven.told[-2]["tokens"] == [6]


def test_a_worker_of_this_process_takes_our_code_late(drive):
    """Install rlprof while the run goes on: the engine was born without it, and is recorded."""
    driven = drive("late")

    (before,) = (one["installed"] for one in driven.told if "installed" in one)
    (found,) = traces_of(driven.run("late"), "torch", "2/rollout")
    assert not before
    assert found[0].state == "whole"
