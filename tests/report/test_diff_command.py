"""`rlprof diff`: two runs on disk, compared as a user does it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rlprof_cli import main
from tests.docs.pages import PAGES, blocks, section
from tests.docs.shell import agree, commands
from tests.report.folder import Driven


def write(path, steps=20, *, update=4.0, tokens=1000, seed=1, extra=(), recorded=0, **more):
    """Write a run whose rollout takes 10 ms a token, with noise of 1 %, and one step recorded."""
    rng, run = np.random.default_rng(seed), Driven(path, **more)
    for step in range(1, steps + 1):
        count = round(tokens * rng.uniform(0.8, 1.2))
        phases = {"rollout": 0.01 * count, "update_actor": update, **dict.fromkeys(extra, 1.0)}
        noisy = {name: seconds * rng.normal(1, 0.01) for name, seconds in phases.items()}
        window = {"start_step": step, "end_step": step + 1, "phase": None, "occurrence": 0}
        key = {"window": window, "tool": "torch"}
        if step == recorded:
            run.event(run.driver, "opened", run.now, **key, scratch="", asked={})
        run.step(step, noisy, tokens=count if tokens > 1 else 0)
        if step == recorded:
            run.event(run.driver, "closed", run.now, **key, seconds=0.0, reason="end")
    return run.written()


def compare(capsys, *argv):
    """Return the values that `--json` prints."""
    assert main(["diff", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("steps", "basis"), [("1-5", "equal tokens"), ("4-5", "seconds")], ids=["five", "two"]
)
def test_few_steps_are_compared_without_interval(steps, basis, tmp_path, capsys):
    """Below 8 steps the difference is told, with a warning; below 3 lengths cannot count."""
    a, b = write(tmp_path / "a"), write(tmp_path / "b", update=6.0, seed=2)

    found = compare(capsys, f"{a}:{steps}", b)

    count, update = len(found["a"]["steps"]), found["phases"][1]
    assert update["b_s"] / update["a_s"] - 1 == pytest.approx(update["change"], abs=0.02)
    assert update["change"] == pytest.approx(0.5, abs=0.1)
    assert (update["state"], update["low"], update["basis"]) == ("too few steps", None, basis)
    assert found["sentences"][:2] == [
        f"Too few steps for an interval: A has {count} and B 17, each needs 8.",
        "Without an interval, nothing says which of these differences are chance:",
    ]
    assert [sentence.split(":")[0] for sentence in found["sentences"][2:4]] == [
        "The step", "update_actor",
    ]  # fmt: skip


def test_no_step_to_compare_is_an_answer(tmp_path, capsys):
    """If recording touched all steps that were asked for, the answer says so."""
    run = write(tmp_path / "a", recorded=5)

    assert main(["diff", str(run), f"{run}:5"]) == 0

    shown = capsys.readouterr().out
    assert "B  " + str(run) + ":5: 0 steps (left out: 1 recorded)" in shown
    assert "Too few steps for an interval: A has 16 and B 0, each needs 8." in shown


def test_what_one_run_has_alone_is_named(tmp_path, capsys):
    """A new phase has no change; of what the runs ran with, the differences are there alone."""
    a = write(tmp_path / "a", config={"steps": [1], "tool": "torch"}, versions={"torch": "2.12"})
    b = write(
        tmp_path / "b", extra=["validate"], seed=2, config={"steps": [2], "tool": "torch"},
        versions={"torch": "2.13"},
    )  # fmt: skip

    found = compare(capsys, a, b)

    assert {one["name"]: one["state"] for one in found["phases"]}["validate"] == "only B"
    assert any(one.startswith("Only B has validate (") for one in found["sentences"])
    assert found["settings"] == [{"name": "steps", "a": "[1]", "b": "[2]"}]
    assert found["versions"] == [{"name": "torch", "a": "2.12", "b": "2.13"}]


@pytest.mark.parametrize(
    ("count", "steps", "why"),
    [
        (20, ":90-99", ": has no step 90-99; it has 1-20"),
        (20, ":9-5", ":9-5: expected steps like RUN:5 or RUN:5-20,30-45 ('9-5' ends before"),
        (0, "", ": no steps to compare: No process"),
    ],
)
def test_steps_that_cannot_be_are_one_error(count, steps, why, tmp_path, capsys):
    """It names what was typed, and what there is."""
    run, other = write(tmp_path / "a", steps=count), write(tmp_path / "b", steps=4)

    assert main(["diff", str(other), f"{run}{steps}"]) == 1

    assert f"rlprof: {run}{why}" in capsys.readouterr().err


def test_the_example_of_the_page_is_what_happens(tmp_path, capsys, monkeypatch):
    """docs/commands.md shows what the command prints."""
    write(tmp_path / "outputs/a")
    write(tmp_path / "outputs/b", update=4.4, tokens=1400, seed=2)
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(section(PAGES["docs/commands.md"], "`rlprof diff`"), "console")
    ((command, shown),) = commands(block.text)

    assert main(command.split()[1:]) == 0

    printed = capsys.readouterr().out
    assert agree(shown, printed), printed
