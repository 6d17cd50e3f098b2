"""A real verl loop that was started without rlprof, recorded by `rlprof attach` from a shell."""

from collections import Counter

from tests.verl_real.same import is_as_asked
from tests.verl_real.training import WAYS, train

STEPS = 6


def test_workers_and_replicas_of_a_live_loop_are_recorded_whole(tmp_path):
    """`attach` records both ranks, both replicas and their workers, whole in each step."""
    attached = train("attached", tmp_path, STEPS)

    assert (attached.code, attached.shell) == (0, 0), attached.log[-4000:]
    assert set(attached.steps) == set(range(1, STEPS + 1))
    run = attached.run
    steps = sorted({capture.window.start_step for capture in run.captures})
    assert len(steps) == WAYS["attached"].attached
    found = Counter(
        (c.window.start_step, c.window.phase, str(c.target), c.tool, c.state) for c in run.captures
    )
    assert found == {
        (step, None, target, tool, "whole"): 1
        for step in steps
        for target, tool in (
            *((f"actor {rank}/2", "torch") for rank in (0, 1)),
            *((f"rollout replica {n}", "vllm") for n in (0, 1)),
            *((f"rollout replica {n} worker 0", "torch") for n in (0, 1)),
        )
    }
    assert (run.skipped, run.missing, run.problems) == ((), (), ())
    assert all(map(is_as_asked, run.captures))
    assert {c.applied["record_shapes"] for c in run.captures if c.tool == "torch"} == {True}
