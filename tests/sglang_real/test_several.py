"""Real engines of two schedulers: ranks of tensor parallelism, replicas of data parallelism."""

import pytest

from tests.sglang_real.conftest import captures, steps, traces

pytestmark = pytest.mark.slow
SIZES = {"tp 2": {"tp_size": 2}, "dp 2": {"dp_size": 2}}
PLACES = {"tp 2": ["tp0_pp0_dp0", "tp1_pp0_dp0"], "dp 2": ["tp0_pp0_dp0", "tp0_pp0_dp1"]}


@pytest.fixture(scope="module", name="driven", params=SIZES)
def _driven(request, drive):
    return drive("several", sizes=SIZES[request.param])


@pytest.fixture(name="layout")
def _layout(request):
    return request.node.callspec.params["driven"]


@pytest.mark.parametrize("step", [1, 2])
def test_each_scheduler_has_a_trace_of_exactly_the_steps_asked_for(driven, layout, step):
    """With `way: worker` each scheduler's trace has the steps asked for, and names its ranks."""
    files = traces(driven.run("worker"), "torch", f"{step}/rollout")

    assert [place in file.name for place, file in zip(PLACES[layout], files, strict=True)] == [
        True,
        True,
    ]
    assert [len(steps(file)) for file in files] == [2, 2]


# failures.md: sglang-traces
@pytest.mark.parametrize("step", [1, 2])
def test_sglangs_own_profiler_leaves_a_trace_for_each(driven, step):
    """With `way: native` each scheduler's trace has the steps asked for, and its number."""
    run = driven.run("native")

    (capture,) = captures(run, "sglang", f"{step}/rollout")
    files = traces(run, "sglang", f"{step}/rollout")

    assert capture.state == "whole"
    assert ["_worker0_" in files[0].name, "_worker1_" in files[1].name] == [True, True]
    assert [len(steps(file)) for file in files] == [2, 2]


def test_one_rank_is_recorded_alone(driven):
    """With `ranks: [1]` only that rank leaves a trace."""
    run = driven.run("one rank")

    for step in (1, 2):
        (file,) = traces(run, "torch", f"{step}/rollout")
        assert "rank1-of-2" in file.name


# failures.md: sglang-traces
@pytest.mark.parametrize(("way", "tool"), [("worker", "torch"), ("native", "sglang")])
def test_a_replica_without_work_is_noted(drive, way, tool):
    """A replica without work ends with the window and is noted; the other has its steps."""
    run = drive("several", sizes=SIZES["dp 2"]).run(f"idle {way}")

    for step in (1, 2):
        (capture,) = captures(run, "sglang", f"{step}/rollout")
        counts = [len(steps(file)) for file in traces(run, tool, f"{step}/rollout")]
        assert [count for count in counts if count] == [2]
        assert capture.state == "whole"
        assert any("the engine had no step in the window" in note for note in capture.notes)


def test_sglangs_merged_file_is_kept_with_the_traces(drive):
    """`native_merge` leaves one merged file, and a trace of each rank."""
    run = drive("several", sizes=SIZES["tp 2"]).run("merged")

    (capture,) = captures(run, "sglang", "1/rollout")

    assert sum("merged-" in one.path for one in capture.artifacts) == 1
    assert len(traces(run, "sglang", "1/rollout")) == 2
