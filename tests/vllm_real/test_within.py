"""A real LLM in the driver's process: the options of verl's users, and other profilers."""

import pytest

from tests.real_engines import KNOWN, counters_of
from tests.vllm_real.conftest import engine_steps, trace, traces_of
from tests.vllm_real.tiny import TABLE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    return drive("within")


@pytest.mark.parametrize(("way", "stack", "shapes", "ranks"), TABLE)
def test_verls_options_apply_or_are_unsupported(driven, way, stack, shapes, ranks):
    """Stacks and shapes are in the trace of step 2, or are reported as unsupported."""
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
    else:  # the engine was launched with neither
        assert (has_stacks, has_shapes) == (False, False)
        assert {name for name, asked in unsaid.items() if asked} == told


# failures.md: vllm-profiled
@pytest.mark.parametrize("way", ["worker", "native"])
def test_another_torch_profiler_is_not_disturbed(driven, way):
    """The window is refused with the reason, and the other profiler has its events."""
    told = driven.of(f"{way} beside another")
    run = driven.run(f"{way} beside another")

    failed = [capture for capture in run.captures if capture.state == "failed"]

    assert len(failed) == 1
    assert any("another torch profiler is active" in note for note in failed[0].notes)
    assert told[0]["tokens"] == [5, 3]
    assert told[1]["events"] > 100


# failures.md: vllm-refused
def test_any_tool_records_inside_the_worker(driven):
    """A third-party tool records inside the worker with counters; one that needs CUDA fails."""
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
    """Trainer and worker record in sessions of their own, each in its own phase."""
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


def test_rlprof_may_be_installed_after_the_engine_has_started(drive):
    """An LLM that started without rlprof's plugin is recorded inside its worker."""
    driven = drive("late")

    (before,) = (one["installed"] for one in driven.told if "installed" in one)
    (found,) = traces_of(driven.run("late"), "torch", "2/rollout")
    assert not before
    assert found[0].state == "whole"
