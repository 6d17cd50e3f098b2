"""Real engines of two workers, by tensor and by data parallelism; the death of a worker."""

import json

import pytest

from tests.vllm_real.conftest import engine_steps, trace, traces_of

pytestmark = pytest.mark.slow
SIZES = {
    "tp": ({"tensor_parallel_size": 2}, {"VLLM_CPU_OMP_THREADS_BIND": "0|1"}),
    "dp": ({"data_parallel_size": 2}, {}),
}


@pytest.fixture(scope="module", name="driven", params=SIZES)
def _driven(drive, request):
    sizes, env = SIZES[request.param]
    return request.param, drive("several", sizes=sizes, env=env)


def test_every_worker_records_itself(driven):
    """Each worker has a capture with its rank, place and steps; the summary lists the answers."""
    axis, driven = driven
    run = driven.run("worker")
    ran = driven.of("worker")[0]["ran"]

    found = traces_of(run, "torch", "1/rollout")

    targets = sorted((capture.target for capture, _ in found), key=lambda target: target.rank)
    assert [
        (target.rank, target.world_size, target.replica, target.worker) for target in targets
    ] == [(4, 8, 1, 0), (5, 8, 1, 1)]
    assert [target.coordinates[axis] for target in targets] == [0, 1]
    steps = {c.target.worker: len(engine_steps(trace(run, artifact))) for c, artifact in found}
    assert ran[0] == steps[0]
    assert 0 < steps[1] <= ran[0]  # of two engines, the second answers only rlprof
    file = next(
        artifact.path for capture in run.captures if capture.tool == "vllm"
        for artifact in capture.artifacts if artifact.format == "json"
    )  # fmt: skip
    said = json.loads((run.path / file).read_text())
    answering = [0, 1] if axis == "tp" else [0]  # of several engines the first alone answers
    assert answering == [one["worker"] for one in said["answers"]["began"]]
    assert {"recording"} == {one["state"] for one in said["answers"]["began"]}
    assert said["missing"] == []


# failures.md: vllm-traces
def test_vllms_own_profiler_leaves_a_trace_for_each(driven):
    """The profiler leaves a trace of each worker, even if their files have the same name."""
    _, driven = driven
    run = driven.run("native")

    found = [artifact for _, artifact in traces_of(run, "vllm", "1/rollout")]

    traces = [trace(run, artifact) for artifact in found if "requests" not in artifact.path]
    assert [bool(engine_steps(one)) for one in traces] == [True, True]
    names = [artifact.path for artifact in found if "requests" not in artifact.path]
    assert len(set(names)) == len({name.rpartition("enginepid")[2] for name in names})


def test_one_rank_can_be_chosen(driven):
    """`ranks: [5]` of a replica that holds 4 and 5 records its second worker alone."""
    _, driven = driven
    run = driven.run("one rank")

    found = traces_of(run, "torch", "1/rollout")

    assert [capture.target.rank for capture, _ in found] == [5]


# failures.md: engine-gone
def test_the_death_of_a_worker_ends_no_step(driven):
    """Both steps finish although a worker dies: its window is lost, and the next one fails."""
    _, driven = driven
    run = driven.run("killed")

    captures = {(c.window.start_step, c.tool, c.target.worker): c for c in run.captures}

    assert driven.of("killed")[-1]["done"] == [1, 2]
    lost = [c for (step, tool, _), c in captures.items() if (step, tool) == (1, "torch")]
    assert "lost" in {c.state for c in lost}
    assert captures[2, "vllm", None].state == "failed"
    notes = captures[2, "vllm", None].notes
    assert any(word in note for note in notes for word in ("dead", "died")), notes
    assert "died" in {process.state for process in run.processes}
