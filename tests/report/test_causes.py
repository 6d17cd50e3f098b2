"""A planted cause is the first finding; bench/report.py counts that over many more runs."""

import argparse
import shlex
from itertools import pairwise
from statistics import median

import attrs
import pytest

import rlprof
from rlprof_cli import capture, main
from rlprof_report import analyse
from rlprof_report._findings.queues import queues_of
from rlprof_report._findings.verdict import of_run
from rlprof_report._terminal import HEIGHT, text_of, wrapped
from rlprof_report.device.values import Device, RequestTimes
from tests.cases import cases
from tests.report.folder import Folder
from tests.report.made_runs import make_fleet, make_torchrun

FLEET = ("straggler", "tail", "tool", "reward", "sync", "replica", "gap", "gc", "data")
TORCHRUN = ("straggler", "data", "gc", "gap")


def causes(path, **more):
    return [one.cause for one in analyse(rlprof.read(path), **more).findings]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "cause"),
    [*((make_fleet, cause) for cause in FLEET), *((make_torchrun, cause) for cause in TORCHRUN)],
)
def test_a_planted_cause_is_the_first_finding(make, cause, tmp_path):
    """A cause planted in every step is the first finding, in a fleet and with torchrun."""
    assert causes(make(tmp_path / "run", [cause], seed=3, steps=7))[0] == cause


def test_a_run_without_a_cause_has_no_finding(tmp_path):
    """Without a cause, the verdict names the longest phase and how to look inside it."""
    fleet = analyse(rlprof.read(make_fleet(tmp_path / "fleet", seed=5)))
    ranks = analyse(rlprof.read(make_torchrun(tmp_path / "ranks", seed=5)))

    assert fleet.findings == ranks.findings == ()
    longest = max(fleet.phases, key=lambda one: one.median_s)
    assert f"The longest phase is {longest.name} " in fleet.verdict
    assert "stands out" in fleet.verdict
    assert "ranks of trainer take about as long in it, so one may" in ranks.verdict
    assert "stands out" not in ranks.verdict
    assert fleet.verdict.endswith("rlprof capture --next 1 --tool torch while a run goes on.")
    recorded = {"window": f"2/{longest.name}", "state": "whole"}
    verdict = of_run(attrs.evolve(fleet, captures=(recorded,)), ())
    assert verdict.endswith("; look inside its windows with rlprof view.")


@cases(
    "slow, seconds, phase, where",
    ((6, 9), 0.7, "update", "In 2 of 11 steps"),
    ((6,), 1.7, "update", "In step 6"),
    ((6, 9), 0.7, "eval", "In 2 of 11 steps"),
    ((3, 6, 9), 0.7, "eval", ""),
)
def test_slow_steps_without_a_known_cause_name_the_phase_that_grew(
    slow, seconds, phase, where, tmp_path
):
    """Slow steps without a known cause name the phase that grew or that few steps have."""
    folder, at = Folder(), 1.0
    trainer = folder.process("trainer", 0)
    for step in range(1, 13):
        end = at + (seconds if step in slow else 0.15)
        usual = end if phase == "update" else at + 0.15
        phases = {"update": (at, usual), phase: (usual, end)} if usual < end else {}
        folder.whole_step(trainer, step, phases or {"update": (at, end)})
        at = end

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=at)))

    more = f"{seconds - 0.15:.2f} s"
    title = f"{where}: update takes {more} more than usual, the step {more}. The cause is unclear."
    if phase == "eval":
        title = f"{where}: eval takes {more}, and most steps have no such phase."
    which = "such a step" if len(slow) > 1 else "step 6"
    end = f" Without that, {which} takes 0.15 s at best."
    said = end if where else "(median of 11, mean 0.30 s). No cause"
    assert [one.title for one in analysis.findings] == [title] * bool(where)
    assert said in analysis.verdict
    assert analysis.phases[-1].steps == (len(slow) if phase == "eval" else 11)


def test_a_small_part_of_a_slow_step_is_not_its_cause(tmp_path):
    """A cause that is no quarter of what a step takes longer yields to: all phases are slow."""
    folder, at = Folder(), 1.0
    trainer = folder.process("trainer", 0)
    for step in range(1, 13):
        times = 40 if step == 6 else 1
        usual = {"rollout": 0.1, "update": 0.1, "weight_sync": 0.03}
        phases = {name: (at, at := at + times * took) for name, took in usual.items()}
        folder.whole_step(trainer, step, phases)

    (found,) = analyse(rlprof.read(folder.write(tmp_path / "run", until=at))).findings

    assert found.title.startswith(
        "In step 6: rollout takes 3.90 s more than usual, the step 8.97 s."
    )
    assert "All phases take longer" in found.title


@pytest.mark.slow
def test_a_cause_in_a_few_steps_is_found_in_those(tmp_path):
    """Tools that stall in few steps are a finding of these steps, and of each one asked for."""
    path = make_fleet(tmp_path / "run", ["tool"], seed=4, steps=14, trajectories=192, rare=0.25)

    analysis = analyse(rlprof.read(path))

    assert [one.cause for one in analysis.findings] == ["tool"]
    assert len(analysis.findings[0].steps) < len(analysis.clean.steps) / 2
    slow = [one for one in analysis.steps if one.step in analysis.findings[0].steps]
    assert min(one.seconds for one in slow) > analysis.clean.median_s
    usual_s = median(one.seconds for one in slow)
    assert f" of a step (median {usual_s:.2f} s), in " in analysis.findings[0].evidence[0]

    asked = analysis.findings[0].steps[0]
    one = analyse(rlprof.read(path), step=asked)
    assert (one.findings[0].cause, one.findings[0].steps) == ("tool", (asked,))
    assert one.verdict.startswith(f"Step {asked} took ")


def test_the_bound_holds_without_the_cause(tmp_path):
    """The bound of a slow rank is at least its true gain; the critical path goes through it."""
    slow = analyse(rlprof.read(make_torchrun(tmp_path / "slow", ["straggler"], seed=1)))
    fast = analyse(rlprof.read(make_torchrun(tmp_path / "fast", [], seed=1)))

    gained = slow.clean.median_s - fast.clean.median_s
    assert gained <= slow.findings[0].bound_s <= gained * 2
    assert slow.findings[0].where == ("trainer 1",)
    for step in slow.steps:
        path = {part.what: part for part in step.path}
        assert path["forward"].where == "trainer 1"
        assert path["forward"].seconds == pytest.approx(1.0, abs=0.02)
        assert path["backward"].seconds == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("does_change", [False, True])
@pytest.mark.parametrize("second", ["backward", "weight_sync"])
def test_a_rank_that_is_slow_between_its_phases_is_blamed(second, does_change, tmp_path):
    """A rank that is slow between its phases is the finding, not the sync that waits for it."""
    folder = Folder({"tool": "none", "roles": {"trainer": {}}})
    for rank in range(2):
        stem = folder.process("trainer", rank, world=2)
        for step in range(1, 9):
            begun = step + 0.3 + 0.4 * (rank == (step % 2 if does_change else 1))
            phases = {"forward": (step, step + 0.3), second: (begun, step + 1)}
            folder.whole_step(stem, step, phases)

    first, *others = analyse(rlprof.read(folder.write(tmp_path / "run", until=9))).findings

    who = f"trainer {0 if does_change else 1}, the slowest between phases"
    rest = "; other steps have another one." if does_change else "."
    assert first.title == f"All wait 0.40 s for {who}{rest}"
    assert "prof.phase(...)" in first.evidence[-1]
    syncs = [("sync", pytest.approx(0.3))] if second == "weight_sync" else []
    assert [(one.cause, one.seconds) for one in others] == syncs


def test_a_rank_that_is_late_once_in_a_while_is_named(tmp_path):
    """A rank that is busy between phases in a few steps is their finding, for all wait for it."""
    folder, at = Folder({"tool": "none", "roles": {"actor": {}}}), 1.0
    stems = [folder.process("actor", rank, world=2) for rank in range(2)]
    for step in range(1, 17):
        late, then = (4.0 * (one in (6, 11)) for one in (step, step + 1))
        end = at + late + 1
        for stem, begun, ended in zip(stems, (at, at + late), (end, end + then), strict=True):
            phases = {"rollout": (begun, end - 0.2), "update": (end - 0.2, end)}
            folder.whole_step(stem, step, phases, (begun, ended))
        at = end

    (finding,) = analyse(rlprof.read(folder.write(tmp_path / "run", until=at))).findings
    waits = "In 2 of 15 steps: The others wait 4.00 s longer than usual for actor 1"
    assert finding.title == f"{waits}, which is between phases."
    assert "--role actor --rank 1 --mode continuous" in finding.command


LOADS, SAVES = "actor {} loads data for 0.40 s in `data`", "actor {} is alone in `save` for 0.40 s"
LONG = "generate_for_inference_of_it"
GENERATES = f"All wait 0.30 s for actor {{}}, the slowest in {LONG}."


@pytest.mark.parametrize("how", [(0, False), (0, True), (1, False), (1, True)])
@cases(
    "phase, usual, title",
    ("data", 0.02, LOADS), ("data", 0, LOADS), ("save", 0, SAVES), (LONG, 0.1, GENERATES),
)  # fmt: skip
def test_the_rank_that_others_wait_for_is_named(phase, usual, title, how, tmp_path):
    """The rank that others wait for is named, not a waiting one; reward time is a finding."""
    slow, meets_inside = how
    folder = Folder()
    for rank in range(2):
        stem = folder.process("actor", rank, world=2)
        for step in range(1, 9):
            came = step + 0.1 + (0.4 if rank == slow else usual)
            phases = {"reward": (step - 0.1, step + 0.1)}
            phases |= {phase: (step + 0.1, came)} if came > step + 0.1 else {}
            phases |= {"update": (came if meets_inside else step + 0.5, step + 0.9)}
            folder.whole_step(stem, step, phases)
            about = {"trajectory": f"{step}-{rank}"} if phase == LONG else {}
            folder.span(stem, "span", "trajectory", (step + 0.1, came), step, **about)

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=12)))

    finding, rewards = analysis.findings
    named = [one for one in text_of(analysis).splitlines() if one.endswith(f": actor {slow}")]
    assert max(map(len, named), default=0) <= 100
    assert named or phase != LONG
    assert finding.title.startswith(title.format(slow))
    assert rewards.title == "Computing rewards takes 0.20 s in reward, while training waits."
    assert 0.3 <= finding.seconds <= finding.bound_s <= 0.5


@cases(
    "taken, found",
    (0.0, ["straggler in update"]),
    (0.1, ["straggler in generate", "straggler in update"]),
)
def test_one_slow_step_of_a_rank_is_a_finding_of_its_own(taken, found, tmp_path):
    """One slow step of a rank is its own finding; a rank that alone drives rollouts is not slow."""
    folder = Folder({"tool": "none", "roles": {"actor": {}}})
    for rank in range(2):
        stem, at = folder.process("actor", rank, world=2), 0.0
        for step in range(1, 9):
            rolled, late = at + (taken if rank else 0.4), 2.0 if step == 6 else 0.0
            done = at + 0.4 + (0.05 if rank else 0.05 + late)
            phases = {
                "generate": (at, rolled),
                "update": (at + 0.4, done),
                "meet": (done, at + 0.5 + late),
            }
            folder.whole_step(stem, step, phases)
            cuts = (at, (at + rolled) / 2, rolled) if step == 3 else (at, rolled)
            for nth, times in enumerate(pairwise(cuts)):
                whose = f"{step}-{rank}-{nth}"
                folder.span(stem, "span", "trajectory", times, step, trajectory=whose)
            at += 0.5 + late

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=20)))

    findings, path = analysis.findings, {part.where for part in analysis.steps[2].path}
    assert path >= {"trajectory 3-0-0", "trajectory 3-0-1"}
    named = [f"{one.cause} in {one.title.split()[-1].strip('.')}" for one in findings]
    assert named == found
    assert findings[-1].title.startswith("In step 6: All wait 2.")


@cases(
    "cause, title",
    ("straggler", "In 4 of 12 steps: All wait 0.30 s for actor 1, the slowest in update."),
    ("gc", "In 4 of 12 steps: Python's garbage collector stops actor 1 for 0.30 s."),
    ("both", "In 4 of 12 steps: All wait 0.30 s for actor 0, the slowest in update."),
)
def test_a_rank_that_is_late_in_some_steps_is_named(cause, title, tmp_path):
    """A rank that is late in some steps is named; a collection that delays no rank is not."""
    folder, at = Folder(), 0.0
    stems = [folder.process("actor", rank, world=2) for rank in (0, 1)]
    for step in range(1, 14):
        late, last = 0.3 * (step % 3 == 0), 2 if cause == "both" else 1
        for rank, stem in enumerate(stems):
            done = at + 0.3 + late * (rank if last == 1 else last - rank)
            begun = done - 0.2 if cause == "gc" else at + 0.1
            phases = {"rollout": (at, at + 0.1), "update": (begun, done)}
            folder.whole_step(stem, step, phases | {"meet": (done, at + 0.4 + late * last)})
            if late and rank and cause != "straggler":
                folder.span(stem, "span", "gc", (at + 0.1, at + 0.4), step)
        at += 0.4 + late * last

    findings = analyse(rlprof.read(folder.write(tmp_path / "run", until=at))).findings

    assert [one.title for one in findings] == [title]


@cases("hosts, who", (2, "the 2 ranks of actor on node-0"), (1, "ranks 0-1 of actor"))
def test_ranks_that_are_slow_together_are_named(hosts, who, tmp_path):
    """Ranks that are slow together are named as one finding, by host or by number."""
    folder, where = Folder(), [f"node-{rank * hosts // 4}" for rank in range(4)]
    stems = [folder.process("actor", rank, world=4, host=where[rank]) for rank in range(4)]
    for step in range(1, 9):
        for rank, stem in enumerate(stems):
            done = step + (0.7 + 0.05 * (rank == step % 2) if rank < 2 else 0.3)
            folder.whole_step(stem, step, {"reward": (step, done), "meet": (done, step + 0.9)})

    told = analyse(rlprof.read(folder.write(tmp_path / "run", until=9)))

    slow, rewards = told.findings
    assert f"slowest by 0.45 s: {who}" in text_of(told)
    assert slow.title == f"All wait 0.45 s for {who}, the slowest in reward."
    assert rewards.title == "Computing rewards takes 0.30 s in reward, while training waits."


@pytest.mark.parametrize("cause", ["data", "gc"])
def test_a_cause_on_all_ranks_is_one_finding(cause, tmp_path):
    """A cause that stops all ranks is one finding, even if the slowest rank changes."""
    folder = Folder({"tool": "none", "roles": {"trainer": {}}})
    for rank in range(2):
        stem = folder.process("trainer", rank, world=2)
        for step in range(1, 9):
            loaded = step + 0.4 + 0.001 * (rank == (step % 4 > 0))
            name = "load_data" if cause == "data" else "rollout"
            folder.span(stem, "span", cause, (step, loaded), step)
            folder.whole_step(stem, step, {name: (step, loaded), "train": (loaded, step + 1)})

    (finding,) = analyse(rlprof.read(folder.write(tmp_path / "run", until=9))).findings

    assert (finding.cause, finding.steps) == (cause, tuple(range(2, 9)))


@cases(
    "slow, is_noted, title",
    ([0, 1], True, ""), ([0], True, "; it writes 3.0 times as many tokens"),
    ([0], False, "All wait"), ([0, 2], True, "The 2 replicas on node-0 end"),
)  # fmt: skip
def test_replicas_are_slow_only_if_they_are_always_the_same(slow, is_noted, title, tmp_path):
    """A replica is slow only if it, or its host, is last in every step."""
    folder = Folder({"tool": "none", "roles": {"rollout": {}, "agent": {}}})
    driver, agent = folder.process("driver", 0), folder.process("agent", 0)
    stems = [folder.process("rollout", n, replica=n, host=f"node-{n % 2}") for n in range(4)]
    for step in range(1, 11):
        for number in range(32):
            late, replica = slow[step % len(slow)], number % 4
            took = 0.7 if replica == late else 0.6 if replica in slow and title else 0.4
            times, about = (step, step + took), {"trajectory": f"{step}-{number}", "tokens": 8}
            about |= {"replica": replica} if is_noted else {}
            about |= {"tokens": 24} if [replica] == slow else {}
            whole = folder.span(agent, "span", "trajectory", times, None, **about)
            folder.span(agent, "span", "request", times, None, parent=whole, **about)
            folder.span(stems[replica], "phase", "rollout", times, step)
        folder.whole_step(driver, step, {"rollout": (step, step + 0.7)}, (step, step + 0.71))

    findings = analyse(rlprof.read(folder.write(tmp_path / "run", until=12))).findings

    assert [title in one.title for one in findings] == [True] * bool(title)


def test_one_long_trajectory_is_no_slow_replica(tmp_path):
    """A long trajectory on one replica is a tail, not a slow replica."""
    folder = Folder({"tool": "none", "roles": {"rollout": {}, "agent": {}}})
    driver, agent = folder.process("driver", 0), folder.process("agent", 0)
    for step in range(1, 41, 4):
        for number in range(16):
            about = {"trajectory": f"{step}-{number}", "tokens": 8}
            turns = 10 if number == 3 else 1
            for turn in range(turns):
                times = (step + turn * 0.2, step + turn * 0.2 + 0.2)
                folder.span(agent, "span", "request", times, None, **about, replica=number % 2)
            folder.span(agent, "span", "request", (times[1], times[1] + 0.1), None, **about)
            folder.span(agent, "span", "trajectory", (step, times[1] + 0.1), None, **about)
        folder.whole_step(driver, step, {"rollout": (step, step + 2.2)}, (step, step + 2.21))

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=50)))

    assert [one.cause for one in analysis.findings] == ["tail"]
    rollout = analysis.steps[1].rollout
    names = [replica.name for replica in rollout.replicas]
    assert (names, rollout.even_gain_s) == (["0", "1"], pytest.approx(0.0))
    path = text_of(analyse(rlprof.read(tmp_path / "run"), step=5), step=5)
    assert "2.10 s  rollout: request x 11 " in path


def test_two_slow_tools_are_two_causes(tmp_path):
    """Two slow tools are two findings with their own steps; tool time in general is a third."""
    folder = Folder({"tool": "none", "roles": {"agent": {}}})
    agent = folder.process("agent", 0)
    for step in range(1, 61, 5):
        slow = {26: ("search", 1.8), 41: ("python", 3.0)}.get(step, ("python", 0.0))
        for number in range(24):
            tool, took = slow if number == 5 else ("python", 0.0)
            about, end = {"trajectory": f"{step}-{number}", "tool": tool}, step + 0.6 + took
            folder.span(agent, "span", "trajectory", (step, end), step, **about)
            folder.span(agent, "span", "tool_call", (step + 0.5, end), step, **about)
        folder.whole_step(agent, step, {"rollout": (step, step + 0.6 + slow[1])})

    found = analyse(rlprof.read(folder.write(tmp_path / "run", until=70))).findings

    (python,), (search,), (both,) = (
        [one for one in found if words in one.title]
        for words in (
            "in the tool `python`",
            "in the tool `search`",
            "waits 0.10 s for the tool `python`",
        )
    )
    assert (python.steps, search.steps, both.cause) == ((41,), (26,), "tools")


def test_a_long_step_that_an_export_touched_is_named(tmp_path):
    """A long step that recording touched is named in the verdict but is no finding."""
    folder, at = Folder(), 1.0
    actor = folder.process("actor", 0)
    for step in range(1, 11):
        whole = 4.0 if step == 4 else 1.0
        share = (0.8, 0.1, 0.1)
        edges = [at + whole * sum(share[(n + step) % 3] for n in range(k)) for k in range(4)]
        folder.whole_step(actor, step, dict(zip("abc", pairwise(edges), strict=True)))
        at += whole
    folder.capture(actor, 3, "a", (3.1, 3.2, 3.9), artifact={"path": "t", "kind": "files"})

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=at)))

    said = "Step 4 takes 4.00 s, far more than the recording that touched it."
    assert said in analysis.verdict
    assert f"rlprof why {tmp_path / 'run'} --step 4" in " ".join(analysis.notes)
    assert sum(one.share for one in analysis.phases) == pytest.approx(1.0)


@cases("took, apart, found", (0.02, 1, ["blocked"]), (0.03, 1, []), (0.02, 0, []))
def test_a_tool_that_holds_up_the_other_trajectories_is_named(took, apart, found, tmp_path):
    """A tool whose calls block the agent's thread is named; concurrent calls are not."""
    folder = Folder({"tool": "none", "roles": {"agent": {}}})
    agent = folder.process("agent", 0)
    for step in range(1, 6):
        for number in range(8):
            about = {"trajectory": number}
            folder.span(agent, "span", "trajectory", (step, step + 0.95), step, **about)
            for begins in (step + 0.1 + 0.02 * (8 * turn + apart * number) for turn in range(5)):
                times, about = (begins, begins + took), {**about, "tool": "sh"}
                folder.span(agent, "span", "tool_call", times, step, **about)
        folder.whole_step(agent, step, {"rollout": (step, step + 1)})

    named = causes(folder.write(tmp_path / "run", until=8))
    assert (named == ["blocked"]) if found else ("blocked" not in named)


def test_one_blocking_call_among_awaited_ones_is_named(tmp_path):
    """One blocking call among awaited ones is the first finding."""
    folder = Folder({"tool": "none", "roles": {"agent": {}}})
    agent = folder.process("agent", 0)
    for step in range(1, 19, 3):
        for number in range(8):
            about = {"trajectory": number, "tool": "sh"}
            folder.span(agent, "span", "trajectory", (step, step + 2.9), step, **about)
            turns = [at + 0.16 * turn for turn in range(5) for at in (step, step + 2)]
            calls = [(at + 0.02 * number, at + 0.02 * number + 0.1) for at in turns]
            calls += [(step + 0.95, step + 2)] * (number == 3)
            for times in calls:
                folder.span(agent, "span", "tool_call", times, step, **about)
        folder.whole_step(agent, step, {"rollout": (step, step + 3)})

    (first, *_) = analyse(rlprof.read(folder.write(tmp_path / "run", until=20))).findings

    assert (first.cause, first.seconds) == ("blocked", pytest.approx(1.05))
    assert "Not all of its calls do so" in " ".join(first.evidence)


def rollouts(path, *, trajectories, in_turn=False, counters=None, name="rollout"):
    """Analyse steps with *trajectories* requests each, two of which take nine times as long."""
    folder = Folder({"tool": "none", "roles": {"driver": {}}})
    driver = folder.process("driver", 0, world=1)
    for step in range(1, 8):
        if counters:
            folder.counters(driver, step + 0.5, requests_running=8, **counters)
            folder.counters(driver, step + 0.95, requests_running=8, requests_waiting=0)
        for number in range(trajectories):
            is_long = number in (7, 19)
            end = step + (0.88 if is_long else 0.08) + number / 1000
            about = {"trajectory": number, "tokens": 380 if is_long else 24}
            begin = step + 0.2 * number if in_turn else step
            end = begin + 0.2 if in_turn else end
            folder.span(driver, "span", "trajectory", (begin, end), step, **about)
        phases = {name: (step, step + 0.9), "wait_batch": (step + 0.9, step + 0.91)}
        folder.whole_step(driver, step, phases, (step, step + 0.91))
    return analyse(rlprof.read(folder.write(path, until=9)))


def test_a_tenth_of_the_trajectories_may_be_the_tail(tmp_path):
    """Two long trajectories of 24 are the tail, with their cost; in a training phase, none is."""
    (finding,) = rollouts(tmp_path / "run", trajectories=24).findings
    without = rollouts(tmp_path / "without", trajectories=0)
    in_turn = rollouts(tmp_path / "in_turn", trajectories=4, in_turn=True)
    apart = rollouts(tmp_path / "apart", trajectories=24, name="train")

    assert finding.cause == "tail"
    assert finding.title.startswith("The last 10 % of trajectories hold up the rollout by 0.80 s;")
    assert finding.where == ("trajectory 19", "trajectory 7")
    assert 0.87 <= finding.bound_s <= 0.9
    assert without.findings == in_turn.findings == ()
    assert without.verdict.endswith("mark them with rlprof.trajectory.")
    assert "89% of its critical path is the agent itself" in in_turn.verdict
    assert [one.what for one in apart.steps[2].path] == ["train", "wait_batch"]


def test_requests_that_wait_in_the_engines_are_counted(tmp_path):
    """Requests that wait in the engines are noted with their average number, unless few."""
    alone = rollouts(tmp_path / "alone", trajectories=0, counters={"requests_waiting": 24})
    full = {"requests_waiting": 24, "kv_cache_use": 0.97}
    tail = rollouts(tmp_path / "tail", trajectories=24, counters=full)
    few = rollouts(tmp_path / "few", trajectories=0, counters={"requests_waiting": 2})
    said = "24 requests wait in the engines while 8.0 run (mean of 6 samples)."
    assert f"{said} Let each engine run more requests at once" in alone.verdict
    assert tail.findings[0].cause == "tail"
    assert f"{said} Their KV cache is 97% full: give it more memory" in " ".join(tail.notes)
    assert "wait in the engines" not in " ".join([few.verdict, *few.notes])
    seen = RequestTimes("rollout replica 0", 32, 32, 0.5, 1.4, 0.6, 1.5, 0)
    recorded = attrs.evolve(few, device=Device((), (), (), (seen,)))
    waits = "In its windows, half of the requests of rollout replica 0 wait 0.50 s or longer"
    assert queues_of(recorded, rlprof.read(tmp_path / "few")).startswith(waits)


@cases(
    "more, said, next_",
    (lambda step: 0.05 * step, "0.57 s in steps 2-9, 1.17 s in steps 14-21, most of it in update.",
     "changed: rlprof diff RUN:2-9 RUN:14-21"),
    (lambda step: 0.05 * step + 2 * (step == 11), "Steps get longer: 0.57 s in steps 2-9", "diff"),
    (lambda step: 0.4 * (step % 5 == 0), "10, 15 and 20 take up to 2.3 times the median, most of",
     "why: rlprof why RUN --step 5"),
    (lambda step: 0.02 * (step % 3), "No cause shows in the rest.", ""),
)  # fmt: skip
def test_steps_that_grow_or_stand_out_are_in_the_verdict(more, said, next_, tmp_path):
    """Steps that grow or stand out are in the verdict, with a note on how to look closer."""
    folder, at = Folder({"tool": "none", "roles": {"actor": {}}}), 0.0
    trainer = folder.process("actor", 0)
    for step in range(1, 22):
        end = at + 0.3 + more(step)
        folder.whole_step(trainer, step, {"rollout": (at, at + 0.2), "update": (at + 0.2, end)})
        at = end
    folder.event(trainer, "dropped", at, spans=7)

    told = analyse(rlprof.read(folder.write(tmp_path / "run", until=at)))

    assert said in told.verdict
    assert next_.replace("RUN", str(tmp_path / "run")) in " ".join(told.notes)
    assert told.verdict.startswith("Cannot tell for sure: spans/")


@cases(
    "wait, sync, phase, said",
    (0.4, 0.15, "wait_rollout", "The trainer waits more than the engines"),
    (0.4, 0.15, "wait_batch", "they spend 100% of that in the tool `search`"),
    (0.4, 0.15, "wait_ready", "they spend 100% of that in rewards"),
    (0.4, 0.15, "wait_tail", "on average 1.0 of 5 still run, so"),
    (0.05, 0.2, "wait_rollout", "The trainer waits more than the engines"),
)
def test_a_trainer_one_step_off_waits_or_syncs(wait, sync, phase, said, tmp_path):
    """One step off-policy, the larger of wait and sync is the finding, with its reason."""
    folder, at = Folder({"tool": "none", "roles": {"driver": {}}}), 0.0
    driver = folder.process("driver", 0)
    for step in range(1, 9):
        ends = [at, at + wait, at + wait + 0.3, at + wait + 0.3 + sync]
        names = (phase, "update", "weight_sync")
        times = dict(zip(names, pairwise(ends), strict=True))
        folder.whole_step(driver, step, times)
        made, begun = (ends[1] - 0.001, ends[3] + wait), ends[1] - 0.001
        part = {"wait_batch": "tool_call", "wait_ready": "reward"}.get(phase)
        if part:  # mostly within the wait, partly after it
            made, begun = (at, ends[1] + 0.1), at + 0.45
            about = {"trajectory": f"{step}", "tool": "search"}
            folder.span(driver, "span", part, (at, begun), None, **about)
        for short in range(4 if phase == "wait_tail" else 0):
            about = {"trajectory": f"{step}-{short}"}
            folder.span(driver, "span", "trajectory", (ends[1], ends[1] + 0.1), None, **about)
        for name, start in (("trajectory", made[0]), ("request", begun)):
            folder.span(driver, "span", name, (start, made[1]), None, trajectory=f"{step}")
        at = ends[3]

    told = analyse(rlprof.read(folder.write(tmp_path / "run", until=at + 1)))

    helps = {one.what: one.seconds for one in told.steps[4].helps}
    assert told.findings[0].cause == ("wait" if wait > sync else "sync")
    assert "one-step off-policy" not in helps
    assert helps.get("sync", 0.0) == pytest.approx(max(0.0, sync - wait))
    assert said in f"{told.findings[0].title} {told.steps[4].flow.advice}"
    flight = f"weight_sync takes {sync:.2f} s, with requests in flight for {sync:.2f} s of it."
    assert flight in [one.title for one in told.findings] or wait > sync


@cases(
    "kind, role, ends, said",
    ("span", "actor", 0.5, "Most of that is in the span evaluate of actor 0."),
    ("phase", "judge", 0.5, "Most of that is in evaluate of judge 0."),
    ("phase", "actor", 1, "rollout takes all of a step, which hides the phases in it (evaluate)"),
)
def test_spans_and_phases_in_a_gap_are_named(kind, role, ends, said, tmp_path):
    """Evidence names a span or another role's phase in a gap; a note, phases in a phase."""
    folder = Folder()
    stems = {one: folder.process(one, 0) for one in ("actor", "judge")}
    for step in range(1, 6):
        whole = folder.span(stems["actor"], "phase", "rollout", (step, step + ends), step)
        times, parent = (step + 0.5, step + 0.9), whole if role == "actor" else None
        folder.span(stems[role], kind, "evaluate", times, step, parent=parent)
        folder.span(stems["actor"], "step", f"step {step}", (step, step + 1), step)

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=7)))

    evidence = [one.evidence[-1] for one in analysis.findings]
    assert [one for one in (*evidence, *analysis.notes) if one.startswith(said)]


def test_ranks_that_are_slow_by_turns_for_their_tokens_are_to_be_balanced(tmp_path):
    """Ranks that are slow by turns have their tokens as evidence and a command for all ranks."""
    folder = Folder({"tool": "torch", "roles": {"actor": {}}})
    for rank in range(2):
        stem = folder.process("actor", rank, world=2)
        for step in range(1, 12):
            many = rank == step % 2
            times = (step, step + (0.8 if many else 0.4))
            folder.span(stem, "phase", "update", times, step, tokens=8000 if many else 4000)
            folder.span(stem, "step", f"step {step}", (step, step + 0.8), step)

    (finding,) = analyse(rlprof.read(folder.write(tmp_path / "run", until=13))).findings

    assert finding.evidence[-1].startswith("It has 8,000 tokens, the median of the others 4,000")
    assert "--rank all" in finding.command


# `rlprof why` answers on one screen


def printed(capsys, *args):
    assert main(["why", *map(str, args)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("length", range(90, 99))
def test_a_time_stands_on_one_line(length):
    """Lines break before a number, not between it and its unit."""
    assert any("5.6 ms" in one for one in wrapped(f"{'x' * length} 5.6 ms at most", 100))


@cases("more, width", ((), 100), (("--step", "5"), 90))
def test_the_answer_fits_on_a_screen(more, width, tmp_path, capsys, monkeypatch):
    """`rlprof why` prints at most 24 lines as wide as the terminal and names what it omits."""
    monkeypatch.setenv("COLUMNS", str(width))
    path = make_fleet(tmp_path / "run", ["tool", "sync", "gap", "data"], steps=7)
    other = make_fleet(tmp_path / "other", ["gap", "straggler", "sync", "tail"], ranks=4)

    lines, others = printed(capsys, path, *more), printed(capsys, other)

    assert max(len(lines), len(others)) <= HEIGHT == 24
    assert "2 smaller findings are in the report: gap, straggler" in others
    assert [one for one in lines if len(one) > width and ": rlprof " not in one] == []
    assert lines[-1].endswith(f"rlprof export {path} --to report")
    assert lines[1].startswith("Step 5 took" if more else "A step takes")


@pytest.mark.parametrize(
    ("steps", "told"),
    [("9", "step 9: is not in this run; it has steps 1-4"), ("3,9", "has no step 9; it has 1-4")],
)
def test_a_missing_step_is_an_error(steps, told, tmp_path, capsys):
    """A step that the run lacks is an error that names its steps."""
    path = make_torchrun(tmp_path / "run", steps=4)

    assert main(["why", str(path), "--step", steps]) == 1

    assert capsys.readouterr().err.startswith(f"rlprof: {path}: {told}\n")


@cases("cause, phases, mode", ("straggler", ["forward"], None), ("gap", None, "continuous"))
def test_a_finding_of_a_live_run_has_a_valid_command(cause, phases, mode, tmp_path, monkeypatch):
    """A finding of a live run has a valid `rlprof capture` command for its role and phase."""
    path = make_torchrun(tmp_path / "run", [cause], ended=False)
    monkeypatch.setattr("rlprof_run._manifest.is_alive", lambda _: True)

    run = rlprof.read(path)
    finding = analyse(run).findings[0]

    words = shlex.split(finding.command)
    assert words[:3] == ["rlprof", "capture", str(path)]
    parser = argparse.ArgumentParser()
    capture.add(parser.add_subparsers())
    args = parser.parse_args(words[1:])
    assert (args.role, args.phase, args.tool) == (["trainer"], phases, ["torch"])
    assert (finding.cause, args.mode) == (cause, mode)
    assert f"trainer {args.rank}".replace("trainer all", "any trainer") in finding.title


@pytest.mark.slow
@cases("make, cause", (make_torchrun, "straggler"), (make_fleet, "tool"), (make_fleet, "sync"))
def test_the_step_to_look_at_has_the_same_finding(make, cause, tmp_path, capsys):
    """The command of a finding opens a step whose first finding is the same."""
    path = make(tmp_path / "run", [cause], seed=1)
    whole = analyse(rlprof.read(path)).findings[0]
    (line,) = [one for one in printed(capsys, path) if one.startswith("   look at: ")]
    what, _, command = line.partition(": rlprof ")

    assert what == f"   look at: {'; '.join(whole.where)}"
    assert main(shlex.split(command)) == 0
    there = analyse(rlprof.read(path), step=whole.step).findings[0]
    assert whole.title.endswith(there.title)
    assert (there.cause, there.seconds, there.where) == (cause, whole.seconds, whole.where)


def test_why_answers_for_a_range_of_steps(tmp_path, capsys, monkeypatch):
    """`rlprof why --step 3-5` answers for these steps of the latest run."""
    make_torchrun(tmp_path / "outputs/profile/run", ["straggler"])
    monkeypatch.chdir(tmp_path)

    lines = printed(capsys, "--step", "3-5")

    units = dict(line.split()[::2][:2] for line in lines if line.startswith(("  data", "  optim")))
    assert units == {"data": "ms", "optim": "s"}
    assert lines[0] == "run run: ended, 3 steps (3 clean): 3-5"
    assert lines[1].startswith("A step takes ")
