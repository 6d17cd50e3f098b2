"""Faults of rlprof's own in a real verl loop: `pytest tests/verl_real/faults.py`, in four loops.

pytest does not collect it by its name, so CI leaves it out; `make test-frameworks` runs it.
"""

import os

import pytest

from tests.core.distributions import offer
from tests.verl_real.broken import OFFERS
from tests.verl_real.same import differences
from tests.verl_real.training import train

STEPS = 3


@pytest.fixture(name="bare", scope="module")
def _bare(tmp_path_factory):
    trained = train("bare", tmp_path_factory.mktemp("bare"), STEPS)
    assert trained.code == 0, trained.log[-4000:]
    assert len(trained.steps) == STEPS
    assert trained.weights
    return trained


@pytest.fixture(name="_installed", autouse=True)
def _install(tmp_path, monkeypatch):
    """Put the broken tools where every process of the loop finds them as installed."""
    offer(tmp_path / "site", "broken", OFFERS)
    there = [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, there)))


def test_a_folder_that_cannot_be_written_costs_no_step(bare, tmp_path):
    """If the run folder cannot be made, training is the same and the log has the reason."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file/runs"

    trained = train("recorded", tmp_path, STEPS, overrides=[f"global_profiler.save_path={folder}"])

    assert differences(bare, trained) == [], trained.log[-4000:]
    assert trained.run is None
    assert f"{folder}: cannot be made: Not a directory" in trained.log
    assert "rlprof stays off" in trained.log


@pytest.mark.parametrize("raising", ["actor", "rollout"])
def test_tools_that_raise_or_hang_cost_no_step(bare, tmp_path, raising):
    """Windows of tools that raise or hang fail; those of `torch` are whole. Training is equal."""
    (hanging,) = {"actor", "rollout"} - {raising}
    counts = {"actor": 8, "rollout": 2}
    overrides = _tools(**{raising: ["torch", "no_start", "no_stop"], hanging: ["hangs"]})

    trained = train("recorded", tmp_path, STEPS, overrides=overrides)

    assert differences(bare, trained) == [], trained.log[-4000:]
    found = _told(trained.run)
    for tool, state in (("torch", "whole"), ("no_start", "failed"), ("no_stop", "failed")):
        count, states, notes = found[raising, tool]
        assert (count, states) == (counts[raising], {state})
        if raising == "actor" and tool != "torch":
            hook = tool.removeprefix("no_")
            assert notes == {f"{hook}: RuntimeError: {hook} went wrong"}
    count, states, notes = found[hanging, "hangs"]
    assert (count, states) == (counts[hanging], {"failed"})
    assert all("start_timeout_s" in note for note in notes)
    assert {process.state for process in trained.run.processes} == {"ended"}


def _tools(**roles):
    own = "+global_profiler.global_tool_config.rlprof.roles"
    return [f"{own}.{role}.tool=[{','.join(tools)}]" for role, tools in roles.items()]


def _told(run):
    """Return role and tool → how many captures, their states and their notes."""
    found = {}
    for capture in run.captures:
        key = capture.target.role, capture.tool
        count, states, notes = found.get(key, (0, set(), set()))
        found[key] = count + 1, states | {capture.state}, notes | set(capture.notes)
    return found
