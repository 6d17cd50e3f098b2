"""`rlprof diff` where ranks meet: the rank that waits is not blamed."""

from __future__ import annotations

import random

import pytest

import rlprof
from rlprof_report import analyse
from rlprof_report._diff import Part, diff, text
from tests.report.folder import Folder

RANKS = (0, 1, 2)


def part(path, reward, *, writers=RANKS, seed=1):
    """Run 20 steps on three ranks that meet in update; *reward* says who needs how long for it."""
    draw = random.Random(seed)  # noqa: S311 -- a simulation
    folder, now = Folder({"tool": "none", "roles": {"trainer": {}}}), 10.0
    stems = {rank: folder.process("trainer", rank, world=len(RANKS)) for rank in writers}
    for step in range(1, 21):
        began = now
        rollout = {rank: now + draw.uniform(1.9, 2.1) for rank in RANKS}
        rewards = {
            rank: end + reward.get(rank, 0) * draw.uniform(0.98, 1.02)
            for rank, end in rollout.items()
        }
        now = max(rewards.values()) + draw.uniform(0.98, 1.02)
        for rank, stem in stems.items():
            spans = {"rollout": (began, rollout[rank]), "update": (rewards[rank], now)}
            spans |= {"reward": (rollout[rank], rewards[rank])} if rank in reward else {}
            folder.whole_step(stem, step, spans)
    run = rlprof.read(folder.write(path, until=now + 1))
    analysis = analyse(run)
    return Part(run, analysis, analysis.findings)


def states(found):
    """Return what is said of each phase, and of which rank."""
    return {phase.name: (phase.state, phase.rank) for phase in found.phases}


@pytest.mark.parametrize(
    ("a", "b", "rank"),
    [
        ({0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 2.0, 2: 1.0}, "trainer 1"),
        ({0: 1.0}, {0: 1.5}, None),
        ({1: 1.0}, {1: 1.5}, None),
        ({0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.5, 1: 1.5, 2: 1.5}, ""),
    ],
    ids=["one of them", "the leader alone", "another alone", "all of them"],
)
def test_the_phase_of_the_slow_rank_is_named(a, b, rank, tmp_path):
    """The others wait for it in update: reward is slower; no rank is named where all are."""
    even, slow = part(tmp_path / "a", a), part(tmp_path / "b", b, seed=2)

    found, back = diff(even, slow), diff(slow, even)

    same = "no difference seen"
    assert {name: state for name, (state, _) in states(found).items()} == {
        "rollout": same, "update": same, "reward": "slower",
    }  # fmt: skip
    assert states(back)["reward"][0] == "faster"
    if rank is not None:
        assert (states(found)["reward"][1], states(back)["reward"][1]) == (rank, rank)
        assert found.sentences[1].endswith("B waits for trainer 1.") == bool(rank)
        assert back.sentences[1].endswith("A waits for trainer 1.") == bool(rank)


def test_one_rank_alone_is_called_that(tmp_path):
    """If the others wrote no spans, a wait looks like a slow phase, and a note says so."""
    a = part(tmp_path / "a", dict.fromkeys(RANKS, 1.0))
    b = part(tmp_path / "b", {0: 1.0, 1: 2.0, 2: 1.0}, writers=(0,), seed=2)

    found = diff(a, b)

    assert states(found)["update"] == ("slower", "")
    assert "Where ranks meet, it may wait for a slower one." in " ".join(found.notes)


def test_a_finding_that_grew_shows_both_sizes(tmp_path):
    """A rank that is slow in both runs, but not as much, neither came nor went."""
    a = part(tmp_path / "a", {0: 1.0, 1: 1.5, 2: 1.0})
    b = part(tmp_path / "b", {0: 1.0, 1: 2.5, 2: 1.0}, seed=2)

    found = diff(a, b)

    assert (found.came, found.went) == ((), ())
    assert [one.finding.cause for one in found.resized] == ["straggler"]
    assert found.resized[0].a_s == pytest.approx(0.5, abs=0.15)
    assert found.resized[0].b_s == pytest.approx(1.5, abs=0.15)
    assert f"was {found.resized[0].a_s:.2f} s, is {found.resized[0].b_s:.2f} s" in text(found)
