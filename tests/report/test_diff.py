"""`rlprof diff`: what it compares, its statistics on known differences, and the command."""

import json
import random

import attrs
import numpy as np
import pytest

import rlprof
from rlprof_cli import main
from rlprof_report import analyse
from rlprof_report._diff.compared import diff, text
from rlprof_report._diff.effect import Series, effect, posterior
from rlprof_report._diff.part import Part
from rlprof_report._diff.times import _judged
from rlprof_report.device.values import TopName
from rlprof_report.values.diff import Change
from tests.cases import cases
from tests.docs.pages import PAGES, blocks, section
from tests.docs.shell import agree, commands
from tests.report.folder import Driven, Folder
from tests.report.page.made import made


@pytest.fixture(name="part")
def _part(tmp_path):
    """Return a part of a run of 12 like steps, with nothing found in it."""
    run = Driven(tmp_path / "run")
    for step in range(1, 13):
        run.step(step, {"rollout": 2, "update_actor": 1}, tokens=10)
    recorded = rlprof.read(run.written())
    return Part(recorded, analyse(recorded))


def found(cause, *where):
    return attrs.evolve(made().findings[0], cause=cause, where=where)


def traced(part, *kernels, window="5/update_actor"):
    """Give *part* a trace with *kernels*: name, median in us, calls, share."""
    rows = tuple(
        TopName(name, median * count / 1e6, count, median / 1e6, share, "compute")
        for name, median, count, share in kernels
    )
    device = made().device
    capture = attrs.evolve(device.captures[0], window=window, target="actor 0/1", kernels=rows)
    device = attrs.evolve(device, captures=(capture,), roles=(), late=(), requests=())
    return attrs.evolve(part, analysis=attrs.evolve(part.analysis, device=device))


def test_findings_that_came_and_went_are_named(part):
    """Diff names findings that came or went, not those with the same cause in the same place."""
    a = attrs.evolve(part, findings=(found("straggler", "actor 5: spans/a.jsonl"), found("tail")))
    b = attrs.evolve(part, findings=(found("straggler", "actor 5: spans/b.jsonl"), found("sync")))

    compared = diff(a, b)

    assert [finding.cause for finding in compared.came] == ["sync"]
    assert [finding.cause for finding in compared.went] == ["tail"]
    clean = attrs.evolve(a.analysis.clean, steps=(5,))
    assert diff(attrs.evolve(a, analysis=attrs.evolve(a.analysis, clean=clean)), b).came == ()


def test_kernels_that_differ_are_named(part):
    """Diff names slower, faster, new and gone kernels, but no rare ones or small changes."""
    a = traced(
        part, ("gemm", 100, 50, 0.4), ("attention", 80, 50, 0.3), ("norm", 10, 50, 0.1),
        ("rare", 10, 2, 0.1), ("old", 50, 50, 0.1),
    )  # fmt: skip
    b = traced(
        part, ("gemm", 150, 60, 0.4), ("attention", 40, 50, 0.3), ("norm", 10.5, 50, 0.1),
        ("rare", 90, 2, 0.1), ("new", 50, 50, 0.1),
    )  # fmt: skip

    compared = diff(a, b)

    assert [(one.name, one.state) for one in compared.kernels] == [
        ("gemm", "slower"), ("attention", "faster"), ("old", "gone"), ("new", "new"),
    ]  # fmt: skip
    assert compared.kernels[0].b_median_us == pytest.approx(150)
    assert "slower: gemm (actor): 100.0 us -> 150.0 us, median of 50 and 60 calls" in text(compared)
    assert diff(a, attrs.evolve(b, ranges=(range(6, 13),), typed="6-12")).kernels == ()


def test_slots_that_differ_are_compared(part):
    """Diff shows the utilisation of slots with both values if they differ."""
    steps = tuple(
        attrs.evolve(step, rollout=attrs.evolve(step.rollout, utilisation=0.5))
        for step in part.analysis.steps
    )
    b = attrs.evolve(part, analysis=attrs.evolve(part.analysis, steps=steps))

    compared = diff(part, b)

    assert [(one.name, one.a, one.b) for one in compared.shares] == [
        ("utilisation of slots", "100 %", "50 %")
    ]
    assert diff(part, part).shares == ()


def steps(rng, count, *, slower=0.0, rho=0.0, longer=1.0, noise=0.03):
    """Draw a run whose lengths drift, whose times grow with them, and whose noise is correlated."""
    noises = rng.normal(0, noise, count)
    for at in range(1, count):
        noises[at] = rho * noises[at - 1] + np.sqrt(1 - rho**2) * noises[at]
    drift = np.linspace(1, 1 + rng.uniform(0.1, 0.5), count)
    tokens = 1000 * longer * drift * np.exp(rng.normal(0, 0.08, count))
    seconds = (3 + 0.02 * tokens) * (1 + slower) * np.exp(noises)
    return Series(seconds=seconds, tokens=tokens, at=np.arange(count, dtype=float))


def test_the_effect_is_the_planted_one():
    """The interval contains the planted change, and the exponent is that of the times."""
    rng = np.random.default_rng(3)

    a, b = steps(rng, 200), steps(rng, 200, slower=0.1, longer=1.3)
    found, (_, exponent) = effect(a, b), posterior(a, b)

    assert found["low"] < 0.1 < found["high"]
    assert found["change"] == pytest.approx(0.1, abs=0.02)
    assert exponent == pytest.approx(0.88, abs=0.05)  # of 3 + 0.02 tokens, nearby
    assert found["p"] < 1e-6


@pytest.mark.parametrize(
    ("chances", "seen"),
    [((0.04,), 1), ((0.04, 0.04, 0.5), 0), ((0.03, 0.001, 0.02), 3), ((0.03, 0.001, 0.2), 1)],
)
def test_many_phases_are_corrected_by_holms_method(chances, seen):
    """The p-values of several phases are corrected by Holm's method."""
    one = Change("a", "no difference seen", 1.0, 1.1, 20, 20, change=0.1)

    judged = _judged([attrs.evolve(one, p=p) for p in chances])

    assert [change.state for change in judged].count("slower") == seen


@pytest.mark.slow
def test_runs_that_differ_by_chance_raise_few_alarms():
    """Runs that differ by chance raise at most 6 % alarms, also with correlated noise."""
    alarms = 0
    for count, rho in ((20, 0.0), (20, 0.6), (60, 0.3)):
        rng = np.random.default_rng(19)
        for _ in range(150):
            mixture, _ = posterior(steps(rng, count, rho=rho), steps(rng, count, rho=rho))
            alarms += mixture.p < 0.05

    assert alarms / 450 <= 0.06


# Where ranks meet, the rank that waits is not blamed


RANKS = (0, 1, 2)


def of_ranks(path, reward, *, writers=RANKS, seed=1):
    """Run 20 steps on three ranks that meet in update; *reward* gives seconds by rank."""
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
    """Return the state and rank of each phase by name."""
    return {phase.name: (phase.state, phase.rank) for phase in found.phases}


@cases(
    "a, b, rank",
    ({0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 2.0, 2: 1.0}, "trainer 1"),
    ({0: 1.0}, {0: 1.5}, None),
    ({1: 1.0}, {1: 1.5}, None),
    ({0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.5, 1: 1.5, 2: 1.5}, ""),
    ids=["one of them", "the leader alone", "another alone", "all of them"],
)
def test_the_phase_of_the_slow_rank_is_named(a, b, rank, tmp_path):
    """Diff names the slow phase and its rank, not the phase in which the others wait for it."""
    even, slow = of_ranks(tmp_path / "a", a), of_ranks(tmp_path / "b", b, seed=2)

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


def test_a_run_with_one_writing_rank_notes_that_it_may_wait(tmp_path):
    """If one rank wrote spans, a note says that its slow phase may be a wait."""
    a = of_ranks(tmp_path / "a", dict.fromkeys(RANKS, 1.0))
    b = of_ranks(tmp_path / "b", {0: 1.0, 1: 2.0, 2: 1.0}, writers=(0,), seed=2)

    found = diff(a, b)

    assert states(found)["update"] == ("slower", "")
    assert "Where ranks meet, it may wait for a slower one." in " ".join(found.notes)


def test_a_finding_that_grew_shows_both_sizes(tmp_path):
    """A finding of both runs whose size changed shows both sizes and neither came nor went."""
    a = of_ranks(tmp_path / "a", {0: 1.0, 1: 1.5, 2: 1.0})
    b = of_ranks(tmp_path / "b", {0: 1.0, 1: 2.5, 2: 1.0}, seed=2)

    found = diff(a, b)

    assert (found.came, found.went) == ((), ())
    assert [one.finding.cause for one in found.resized] == ["straggler"]
    assert found.resized[0].a_s == pytest.approx(0.5, abs=0.15)
    assert found.resized[0].b_s == pytest.approx(1.5, abs=0.15)
    assert f"was {found.resized[0].a_s:.2f} s, is {found.resized[0].b_s:.2f} s" in text(found)


# The command: two runs on disk, compared as by a user


def write(path, steps=20, *, update=4.0, tokens=1000, seed=1, extra=(), recorded=0, **more):
    """Write a run with 10 ms of rollout per token and 1 % noise; step *recorded* is recorded."""
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
    assert main(["diff", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("steps", "basis"), [("1-5", "equal tokens"), ("4-5", "seconds")])
def test_few_steps_are_compared_without_interval(steps, basis, tmp_path, capsys):
    """Below 8 steps, diff gives no interval and warns; below 3, it compares seconds."""
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
    """Diff with steps that were all recorded succeeds and says that none is left."""
    run = write(tmp_path / "a", recorded=5)

    assert main(["diff", str(run), f"{run}:5"]) == 0

    shown = capsys.readouterr().out
    assert "B  " + str(run) + ":5: 0 steps (left out: 1 recorded)" in shown
    assert "Too few steps for an interval: A has 16 and B 0, each needs 8." in shown


def test_phases_settings_and_versions_of_one_run_are_named(tmp_path, capsys):
    """Diff names a phase of one run only, and settings and versions that differ."""
    a = write(tmp_path / "a", config={"steps": [1], "tool": "torch"}, versions={"torch": "2.12"})
    b = write(
        tmp_path / "b", extra=["validate"], seed=2, config={"steps": [2], "tool": "torch"},
        versions={"torch": "2.13"},
    )  # fmt: skip

    short = write(tmp_path / "short", update=5e-7)

    found, empty = compare(capsys, a, b), compare(capsys, a, short)

    assert [one["state"] for one in empty["phases"]] == ["no difference seen", "about 0 in B"]
    assert any(one.startswith("update_actor adds 4.0") for one in empty["sentences"])
    assert {one["name"]: one["state"] for one in found["phases"]}["validate"] == "only B"
    assert any(one.startswith("Only B has validate (") for one in found["sentences"])
    assert found["settings"] == [{"name": "steps", "a": "[1]", "b": "[2]"}]
    assert found["versions"] == [{"name": "torch", "a": "2.12", "b": "2.13"}]


@cases(
    "count, steps, why",
    (20, ":90-99", ": has no step 90-99; it has 1-20"),
    (20, ":9-5", ":9-5: expected steps like 3 or 3,5-7, got '9-5'"),
    (0, "", ": no steps to compare: No process"),
)
def test_steps_that_cannot_be_compared_are_an_error(count, steps, why, tmp_path, capsys):
    """Steps that are missing, malformed or in an empty run are an error with the typed words."""
    run, other = write(tmp_path / "a", steps=count), write(tmp_path / "b", steps=4)

    assert main(["diff", str(other), f"{run}{steps}"]) == 1

    assert f"rlprof: {run}{why}" in capsys.readouterr().err


def test_the_example_in_the_docs_is_what_diff_prints(tmp_path, capsys, monkeypatch):
    """`rlprof diff` prints the example of docs/commands.md."""
    write(tmp_path / "outputs/a")
    write(tmp_path / "outputs/b", update=4.4, tokens=1400, seed=2)
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(section(PAGES["docs/commands.md"], "`rlprof diff`"), "console")
    ((command, shown),) = commands(block.text)

    assert main(command.split()[1:]) == 0

    printed = capsys.readouterr().out
    assert agree(shown, printed), printed
