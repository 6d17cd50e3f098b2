"""The times of any run add up, within a microsecond or a millionth."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof_report import analyse
from tests.report.folder import Folder

US = 1e-6
TIME = st.floats(0, 5, allow_nan=False).map(lambda value: round(value, 6))
NAME = st.sampled_from(["rollout", "weight_sync", "update_actor", "log_prob", "wait"])
PIECE = st.tuples(NAME, TIME, TIME)
REQUEST = st.tuples(TIME, TIME, TIME, st.integers(0, 2))
STEP = st.fixed_dictionaries({
    "seconds": st.floats(0.001, 6).map(lambda value: round(value, 6)),
    "phases": st.lists(PIECE, max_size=5),
    "ranks": st.lists(st.tuples(st.integers(0, 3), NAME, TIME, TIME), max_size=12),
    "trajectories": st.lists(st.lists(REQUEST, max_size=3), max_size=6),
    "tools": st.lists(st.tuples(st.integers(0, 5), TIME, TIME), max_size=4),
})  # fmt: skip


def written(path, steps, gaps):
    """Write a run of a driver, four ranks and an agent with spans at arbitrary times."""
    folder, at = Folder(), 1.0
    driver, agent = folder.process("driver", 0), folder.process("agent", 0)
    ranks = [folder.process("actor", rank, world=4) for rank in range(4)]
    for number, (step, gap) in enumerate(zip(steps, gaps, strict=True)):
        for name, start, length in step["phases"]:
            folder.span(driver, "phase", name, (at + start, at + start + length), number)
        for rank, name, start, length in step["ranks"]:
            folder.span(ranks[rank], "phase", name, (at + start, at + start + length), number)
        for index, requests in enumerate(step["trajectories"]):
            name, end = f"{number}-{index}", at
            for start, queued, length, replica in requests:
                end = max(end, at + start + length)
                folder.span(
                    agent, "span", "request", (at + start, at + start + length), None,
                    trajectory=name, queued_s=queued, replica=replica,
                )  # fmt: skip
            folder.span(agent, "span", "trajectory", (at, end), None, trajectory=name)
        for index, start, length in step["tools"]:
            folder.span(
                agent, "span", "tool_call", (at + start, at + start + length), None,
                trajectory=f"{number}-{index}", tool="python",
            )  # fmt: skip
        folder.span(driver, "step", f"step {number}", (at, at + step["seconds"]), number)
        at += step["seconds"] + gap
    return folder.write(path, until=at + 20)


@pytest.mark.slow
@given(
    steps=st.lists(STEP, min_size=1, max_size=4),
    gaps=st.lists(st.sampled_from([0.0, 0.5]), min_size=4, max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_times_of_any_run_add_up(steps, gaps):
    """Phases, critical path, stages of ranks and shares of replicas add up in every step."""
    folder = Path(tempfile.mkdtemp())
    try:
        analysis = analyse(rlprof.read(written(folder / "run", steps, gaps[: len(steps)])))
    finally:
        shutil.rmtree(folder)

    assert [one.step for one in analysis.steps] == list(range(len(steps)))
    for step in analysis.steps:
        adds_up(step, [one for one in analysis.ranks if step.step in one.steps])


def adds_up(step, tables):
    """Check the times of a step, and of its critical path, roles and replicas."""
    phases = sum(one.seconds for one in step.phases)
    assert phases + step.unaccounted_s >= step.seconds - US
    if not step.overlaps:
        assert phases + step.unaccounted_s == pytest.approx(step.seconds, abs=US)
    assert 0 <= step.unaccounted_s <= step.seconds + US
    at = step.start_s
    for part in step.path:  # the parts cover the step without a gap
        assert part.start_s == pytest.approx(at, abs=US)
        at = part.end_s
    assert at == pytest.approx(step.start_s + step.seconds, abs=US)
    for role in {one.role for one in step.frontier}:
        stages = [one.seconds for one in step.frontier if one.role == role]
        spent = {}  # rank → seconds in all phases that ranks share
        for table in (one for one in tables if one.role == role):
            column = table.steps.index(step.step)
            for rank, row in zip(table.ranks, table.seconds, strict=True):
                spent[rank] = spent.get(rank, 0) + (row[column] or 0)
        assert min(stages) >= -US
        assert sum(stages) == pytest.approx(max(spent.values()), abs=US)
    for replica in () if step.rollout is None else step.rollout.replicas:
        shares = (
            replica.running, replica.start, replica.queued or 0.0, replica.tools, replica.tail,
            replica.finished, replica.outside,
        )  # fmt: skip
        assert min(shares) >= 0
        assert sum(shares) == pytest.approx(1, abs=1e-6)
    for one in step.helps:
        assert 0 < one.seconds <= max(step.seconds, 10)
