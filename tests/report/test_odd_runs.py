"""Runs that recording touched, that did not end, that are damaged, or that hold odd values."""

import gzip
import json
import os
import shutil

import numpy as np
import pytest

import rlprof
from rlprof_report import analyse
from tests.cases import cases
from tests.core.steps import through
from tests.report.device.made import text_of
from tests.report.folder import EPOCH_NS, Folder
from tests.report.made_runs import make_fleet, make_torchrun


def ten_steps(folder, *, role="driver", rank=0, late=None, phase="update_actor"):
    """Add a process with ten steps of a second, each with one phase; step *late* takes 3 s."""
    stem, at = folder.process(role, rank, world=2), 1.0
    for step in range(1, 11):
        end = at + (3 if step == late else 1)
        folder.whole_step(stem, step, {phase: (at + 0.01, end)}, (at, end))
        at = end
    return stem


@cases("stop_s, cost_s, in_all_s", (0.8, 0.4, 1.0), (0.3, 0.3, 0.5))
def test_steps_that_recording_touches_are_left_out(stop_s, cost_s, in_all_s, tmp_path):
    """A window's step is recorded and the next one touched; both are left out, with their cost."""
    folder = Folder()
    driver = ten_steps(folder)
    folder.capture(driver, 3, "update_actor", (3.0, 3.2, 4.4), stop_s=stop_s)

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=12)))

    found = {one.step: one.state for one in analysis.steps}
    assert [found[step] for step in (2, 3, 4, 5)] == ["clean", "recorded", "touched", "clean"]
    assert analysis.clean.left_out == {"warm-up": (1,), "recorded": (3,), "touched": (4,)}
    assert analysis.steps[3].cost_s == pytest.approx(cost_s)
    assert analysis.cost_s == pytest.approx(in_all_s)
    assert [one.what for one in analysis.touches] == ["start", "stop"]


def test_a_start_on_any_rank_touches_the_step(tmp_path):
    """A recording that starts on one rank touches the step for all; impossible times do not."""
    folder = Folder({"tool": "torch", "roles": {"actor": {}}})
    ten_steps(folder, role="actor", rank=0)
    other = ten_steps(folder, role="actor", rank=1)
    key = folder.capture(other, 6, "update_actor", (5.95, 6.3, 6.9), stop_s=0.1)
    line = {**key, "mono": 1, "realtime_ns": 10**30, "monotonic_ns": 1, "bound_ns": 1}
    path = folder.write(tmp_path / "run", until=12)
    odd = [("started", {"mono": 2**63}), ("closed", {"seconds": float("inf")})]
    for event, more in (*odd, ("exported", {"seconds": float("nan")}), ("clock", {})):
        add(path, "actor-1", event, **line | more)

    steps = analyse(rlprof.read(path)).steps

    found = [one.state for one in steps if one.step in (4, 5, 6, 7)]
    assert found == ["clean", "touched", "recorded", "clean"]


@cases("hook, phase", ("stop", "update_actor"), ("stop", "weight_sync"), ("configure", "rollout"))
def test_a_step_slowed_by_rlprof_is_a_recording_finding(hook, phase, tmp_path):
    """A step that a stop or configure slowed has the finding `recording`, with its seconds."""
    folder = Folder()
    driver = ten_steps(folder, late=4, phase=phase)
    if hook == "configure":  # for a request on demand
        folder.event(driver, "configuring", 4.0, tool="torch")
        folder.event(driver, "configured", 6.0, tool="torch")
        folder.capture(driver, 4, phase, (6.0, 6.0, 6.1), stop_s=0.001, request="r")
    else:
        folder.capture(driver, 3, phase, (3.0, 3.1, 6.0), stop_s=2.0)

    run = rlprof.read(folder.write(tmp_path / "run", until=14))
    analysis = analyse(run, step=4)

    assert [one.cause for one in analysis.findings] == ["recording"]
    assert "rlprof itself takes 2.00 s of the step" in analysis.verdict
    assert f"The longest is the {hook} of torch" in " ".join(analysis.findings[0].evidence)
    waited = ("torch was configured first, which took 2.0 s",) * (hook == "configure")
    assert run.captures[0].notes == waited


def test_the_last_step_of_a_killed_run_is_unfinished(tmp_path, monkeypatch):
    """The last step of a killed run has its ended phases and is unfinished."""
    folder = Folder()
    driver = ten_steps(folder)
    folder.span(driver, "phase", "rollout", (11.0, 11.4), 11)
    monkeypatch.setattr("rlprof_run._manifest.is_alive", lambda _: False)

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=13, ended=False)))

    last = analysis.steps[-1]
    assert (last.step, last.state, last.seconds) == (11, "unfinished", pytest.approx(0.4))
    assert analysis.state == "died"
    assert [one for one in analysis.notes if one.startswith("Step 11 is unfinished: the run died")]


@cases("goes_on, left_out", (False, (11,)), (True, ()))
def test_a_last_step_that_an_exception_ended_is_unfinished(goes_on, left_out, tmp_path):
    """A last step whose phase was interrupted is unfinished, unless a phase follows."""
    driver = ten_steps(folder := Folder())
    folder.span(driver, "phase", "rollout", (11.0, 11.4), 11, error="KeyboardInterrupt")
    folder.whole_step(driver, 11, {"update": (11.4, 11.8)} if goes_on else {}, (11.0, 11.9))

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=13)))

    assert analysis.clean.left_out.get("unfinished", ()) == left_out


def test_calls_that_ray_recorded_replace_phases_of_members(tmp_path):
    """Ray's calls are phases of members; own phases of a member win, those of its driver do not."""
    folder = Folder()
    driver = ten_steps(folder)
    members = [folder.process("actor", rank, world=2) for rank in range(2)]
    folder.span(members[0], "phase", "update_actor", (2.1, 2.3), 2)
    for member in members:
        folder.span(member, "phase", "update_actor", (3.1, 3.9), 3, source="driver")
    path = folder.write(tmp_path / "run", until=12)
    told = [
        {"of": member, "kind": "phase", "name": "update_actor", "step": step, "id": 1,
         "w0": EPOCH_NS + step * 10**9 + 100_000_000, "w1": EPOCH_NS + step * 10**9 + end}
        for step in (2, 3)
        for member, end in zip(members, (900_000_000, 600_000_000), strict=True)
    ]  # fmt: skip
    lines = "".join(json.dumps(one) + "\n" for one in told)
    (path / "spans" / f"+ray-{driver}.jsonl").write_text(lines)

    steps = analyse(rlprof.read(path)).steps

    for step, slowest, max_s in ((2, 1, 0.5), (3, 0, 0.8)):
        (ranks,) = steps[step - 1].ranks
        assert (ranks.slowest, ranks.who) == (slowest, f"actor {slowest}")
        assert (ranks.max_s, ranks.wait_s) == (pytest.approx(max_s), pytest.approx(0.3))


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"\x00\xff", b'{"kind":"step","name":"x","t0":1e400,"t1":2,"step":1}'],
    ids=repr,
)
def test_a_damaged_line_costs_that_line(line, tmp_path):
    """A damaged line of spans is skipped and makes the verdict uncertain; all others count."""
    whole = make_torchrun(tmp_path / "whole", steps=4)
    expected = analyse(rlprof.read(whole)).steps
    file = next((whole / "spans").glob("trainer-0*"))
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:3], line, *lines[3:]]) + b"\n" + line[:7])

    analysis = analyse(rlprof.read(whole))

    assert analysis.steps == expected
    assert any("skipped" in note for note in analysis.notes) == bool(line)
    assert analysis.verdict.startswith("Cannot tell for sure: spans/") == bool(line)


def test_tokens_of_phases_count_where_no_request_noted_any(tmp_path):
    """Tokens and version of a phase count where no request has noted any."""
    folder = Folder()
    driver = folder.process("driver", 0)
    for step in range(3):
        times, noted = (step, step + 0.6), {"tokens": 500, "version": 8 + step}
        folder.span(driver, "phase", "rollout", times, step, **noted)
        folder.span(driver, "phase", "update", (step + 0.6, step + 0.9), step, version=9 + step)
        folder.span(driver, "span", "request", times, step, trajectory=f"{step}-0")
        folder.span(driver, "step", f"step {step}", (step, step + 1), step)

    steps = analyse(rlprof.read(folder.write(tmp_path / "run", until=5))).steps

    assert [(one.tokens, one.version) for one in steps] == [(500, "9"), (500, "10"), (500, "11")]


def test_work_that_runs_on_into_the_next_step_is_no_idle_device(tmp_path):
    """A device whose work runs on into the next step is not idle there."""
    folder = Folder()
    driver, replica = folder.process("driver", 0), folder.process("rollout", 0, replica=0)
    for step in range(3):
        folder.whole_step(driver, step, {"update_actor": (step, step + 1)})
        folder.span(replica, "phase", "generate", (step + 0.5, step + 1.3), step)
    folder.manifest[replica][0]["devices"] = ["node/cuda:0"]

    steps = analyse(rlprof.read(folder.write(tmp_path / "run", until=5))).steps

    idle = [sum(one.device_s for one in step.bubbles) for step in steps]
    assert idle == pytest.approx([0.5, 0.2, 0.2])


def test_idle_devices_are_counted_by_the_running_phase(tmp_path):
    """Idle device time is counted by running phase; a shared device is busy with either process."""
    folder = Folder()
    driver = folder.process("driver", 0)
    actor, replica = folder.process("actor", 0), folder.process("rollout", 0, replica=0)
    for step in range(3):
        phases = {"rollout": (step, step + 0.6), "update_actor": (step + 0.6, step + 0.9)}
        folder.whole_step(driver, step, phases, (step, step + 1))
        folder.span(replica, "phase", "rollout", (step, step + 0.5), step)
        folder.span(actor, "phase", "update_actor", phases["update_actor"], step)
    folder.manifest[actor][0]["devices"] = ["node/cuda:0", "node/cuda:1", "node/cuda:2"]
    folder.manifest[replica][0]["devices"] = ["node/cuda:2"]

    bubbles = analyse(rlprof.read(folder.write(tmp_path / "run", until=5))).steps[1].bubbles

    found = {one.cause: one.device_s for one in bubbles if one.role == "actor"}
    assert found == pytest.approx({"rollout": 2 * 0.6 + 0.1, "between phases": 3 * 0.1})


# Gaps in a report: ranks without spans, and files that are lost or cut


def fleet_of(path, *, world):
    """Write a fleet whose driver stays in log_prob for 0.6 s after actor 0 is done."""
    folder = Folder()
    driver, member = folder.process("driver", 0), folder.process("actor", 0, world=world)
    for step in range(1, 9):
        folder.whole_step(driver, step, {"log_prob": (step, step + 1)})
        folder.span(member, "phase", "log_prob", (step, step + 0.4), step)
    return folder.write(path, until=12)


def test_time_after_the_last_member_is_a_finding(tmp_path):
    """Time after the last member's phase is the driver's, or hidden if a member writes no spans."""
    two = analyse(rlprof.read(fleet_of(tmp_path / "two", world=2)))
    path = fleet_of(tmp_path / "one", world=1)
    one = analyse(rlprof.read(path))
    (path / "spans" / "+ray-driver-0-node-100.jsonl").touch()
    untold = analyse(rlprof.read(path))

    (hidden,), (alone,) = two.findings, one.findings
    assert (hidden.cause, alone.cause) == ("hidden", "driver")
    assert hidden.title.startswith("0.60 s of log_prob pass after actor 0 is done; ")
    assert (hidden.seconds, hidden.bound_s) == (pytest.approx(0.6), pytest.approx(0.66))
    assert "--role actor --rank all --phase log_prob" in hidden.command
    assert two.verdict.count("actor 1 writes no spans") == 1
    assert alone.title.endswith("after actor 0 is done, the last member with spans.")
    assert alone.command == ""
    assert "writes no spans" not in one.verdict
    assert untold.findings == ()
    assert "+ray-driver-0-node-100.jsonl is empty: phases of the fleet's" in untold.verdict
    assert "No cause stands out" not in untold.verdict


def test_lost_spans_are_named(tmp_path):
    """Reports name ranks without spans or manifest; a run that begins has none."""
    path = make_torchrun(tmp_path / "run", steps=4)
    (lost,) = (path / "spans").glob("trainer-2-*")
    lost.unlink()
    analysis = analyse(rlprof.read(path))
    header = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**header, "expected": {"trainer": "all"}}))
    next((path / "manifest").glob("trainer-2-*")).unlink()
    nothing = analyse(rlprof.read(path))
    young = make_torchrun(tmp_path / "young", steps=1, ended=False)
    next((young / "spans").glob("trainer-2-*")).unlink()
    without = make_torchrun(tmp_path / "without", ranks=2)
    record(without, 1)
    shutil.rmtree(without / "spans")
    alone = make_torchrun(tmp_path / "alone", ranks=1, steps=3)
    (manifest,) = (alone / "manifest").iterdir()
    manifest.unlink()
    unknown = analyse(rlprof.read(alone)).verdict

    assert f"Missing or damaged in manifest/: {manifest.name}. " in unknown
    assert "prof.step(n)" not in unknown
    assert "the files in spans/ are missing" in analyse(rlprof.read(without)).verdict
    assert "trainer 2 writes no spans: if it is slow, nothing here shows" in analysis.verdict
    assert analysis.notes[0] == f"spans/{lost.name} is not there: spans of trainer 2 are missing."
    assert analysis.verdict.startswith(f"Cannot tell for sure: {analysis.notes[0]} ")
    assert "trainer 2 writes no spans" in nothing.verdict
    assert nothing.notes[0] == "trainer 2/4: expected, and no manifest is there."
    assert "writes no spans" not in analyse(rlprof.read(young)).verdict


def test_findings_use_the_steps_before_a_file_is_cut(tmp_path):
    """The verdict names a cut file first; steps after the cut are unfinished."""
    path = make_fleet(tmp_path / "run", ["tool"], steps=10)
    (cut,) = (path / "spans").glob("agent-*")
    os.truncate(cut, cut.stat().st_size * 6 // 10)

    analysis = analyse(rlprof.read(path))

    lost = f"spans/{cut.name} is cut: spans of agent 0 are missing from step 7 on."
    assert analysis.verdict.startswith(f"Cannot tell for sure: {lost} A step takes ")
    assert [one.cause for one in analysis.findings] == ["tool"]
    assert analysis.clean.left_out == {"warm-up": (1,), "unfinished": (7, 8, 9, 10)}


@pytest.mark.parametrize("killed", [True, False])
def test_steps_that_a_killed_rank_did_not_end_are_not_clean(killed, tmp_path):
    """Steps that a killed rank did not end are unfinished; a rank may end before others do."""
    path = make_torchrun(tmp_path / "run", ranks=2, steps=6)
    stem = "trainer-1-node-101"
    for folder, until in (("spans", '"step 4"'), ("manifest", '"ended"'))[: 1 + killed]:
        file = path / folder / f"{stem}.jsonl"
        kept, end, _ = file.read_text().partition(until)
        file.write_text(kept.rpartition("\n")[0] + "\n")
        assert end
        os.utime(file, (0, 0))

    analysis = analyse(rlprof.read(path))

    left_out = analysis.clean.left_out.get("unfinished", ())
    assert (analysis.state, left_out) == ("ended", (4, 5, 6) if killed else ())
    assert ("trainer 1 ended at step 3, others at step 6." in analysis.notes) is not killed
    assert analysis.verdict.startswith("A step takes ")


AWAY = type("Away", (), {"device": "cuda:0", "item": 0, "__index__": lambda _: 7})()


@cases("tokens, counted", (np.array(7.0), 7), (AWAY, 0), (10**400, 0), ("x" * 20_000_000, 0),
       ids=["numpy", "on a device", "huge", "long"])  # fmt: skip
def test_tokens_may_be_of_any_type(tokens, counted, config):
    """Tokens of numpy and torch count unless a device holds them; a huge value hides no span."""
    with rlprof.open(config(tool="none", steps="none")) as prof:
        for _ in prof.steps([1]):
            through(prof.trajectory(0, {"tokens": tokens}))

    own, live = analyse(rlprof.read(prof.run_dir)).steps[0].rollout, prof.figures()
    assert (own.trajectories, own.tokens, live.get("rlprof/tokens", 0)) == (1, counted, counted)


def add(path, process, event, **fields):
    """Add a line to the manifest of a process."""
    (file,) = path.glob(f"manifest/{process}-*")
    with file.open("a") as lines:
        lines.write(json.dumps({"event": event, **fields}) + "\n")


def record(path, late):
    """Add a window of backward in step 5 of two ranks; rank *late* comes last to its collective."""
    window = {"start_step": 5, "end_step": 6, "phase": "backward", "occurrence": 0}
    key, began = {"window": window, "tool": "torch"}, 17 * 10**9
    for rank in range(2):
        begun = 400_000 if rank == late else 0
        note = {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "tid": 1}
        events = [] if late is None else [{**note, "ts": 10 + begun, "dur": 400_100 - begun}]
        name = f"{rank}.json.gz"
        head = {"epoch_ns": EPOCH_NS + began}
        (path / name).write_bytes(gzip.compress(text_of(events, rlprof=head)))
        artifact = {"path": name, "kind": "trace", "format": "chrome-trace", "size": 1000}
        add(path, f"trainer-{rank}", "opened", **key, scratch="", asked={}, mono=began)
        for event, more in (
            ("closed", {"reason": "end", "seconds": 0.5}),
            ("artifact", {"artifact": artifact}),
            ("exported", {"seconds": 0.0}),
        ):
            add(path, f"trainer-{rank}", event, **key, **more, mono=began + 10**9)


def of_meeting(path, **more):
    """Return the notes of a run about ranks that meet."""
    notes = analyse(rlprof.read(path), **more).notes
    return [
        one.partition("which rank is late. ")[2]
        for one in notes
        if " together, so their times" in one
    ]


@cases(
    "late, told",
    (1, None),
    (2, "Nor do the traces of 5/backward: no rank comes late to collectives."),
    (None, "Nor do the traces of 5/backward: they hold no shared collective."),
)
def test_ranks_that_meet_are_to_be_recorded_once(late, told, tmp_path):
    """A note has the command that records ranks that meet; their traces then replace it."""
    path = make_torchrun(tmp_path / "run", ranks=2)
    command = "--role trainer --rank all --phase backward --tool torch"
    when = "while the next run is live"
    assert of_meeting(path) == [f"Record it once {when}: rlprof capture {tmp_path} {command}"]

    record(path, late)

    assert of_meeting(path) == ([told] if told else [])
    for step in () if told else (None, 5):
        first = analyse(rlprof.read(path), step=step).findings[0]
        assert (first.cause, first.seconds) == ("device", pytest.approx(0.4, abs=1e-3))
        assert first.title.startswith("trainer: rank 1 is the last ")


def test_a_run_of_attach_is_recorded_by_attach_again(tmp_path):
    """The note of a run that `rlprof attach` watched has the command `rlprof attach`."""
    path = make_torchrun(tmp_path / "run", ranks=2)
    add(path, "trainer-0", "calls", mono=1)

    assert of_meeting(path) == ["Record it once: rlprof attach --steps 1"]


def test_a_driver_without_phases_has_those_of_its_members(tmp_path):
    """A driver without phases gets its members'; time between watched calls is the driver's."""
    folder = Folder({"tool": "none", "roles": {"actor": {}, "critic": {}}})
    driver = folder.process("driver", 0)
    members = [folder.process("actor", 0, world=2), folder.process("actor", 1, world=2)]
    critic = folder.process("critic", 0)
    for step in range(1, 9):
        for rank, member in enumerate(members):
            folder.span(member, "phase", "fit", (step, step + 0.2), step)
            folder.span(member, "phase", "send", (step + 0.5, step + 0.6 + 0.3 * rank), step)
        folder.span(critic, "phase", "fit", (step + 0.1, step + 0.5), step)
        folder.span(driver, "step", f"step {step}", (step, step + 1), step)

    path = folder.write(tmp_path / "run", until=12)
    analysis = analyse(rlprof.read(path))
    add(path, "driver-0", "calls", mono=1)
    watched = analyse(rlprof.read(path))

    assert (analysis.whose, watched.whose) == ("driver", "the actors")
    assert ["a second late" in " ".join(one.notes) for one in (analysis, watched)] == [False, True]
    (gap,) = (one for one in watched.findings if one.cause == "gap")
    assert gap.where == ("the driver between its calls",)
    assert [(one.name, one.last, one.median_s) for one in analysis.phases] == [
        ("fit", "critic", pytest.approx(0.5)), ("send", "actor", pytest.approx(0.4)),
    ]  # fmt: skip
    path = [(one.what, one.where) for one in analysis.steps[3].path if one.where]
    assert path == [("fit", "critic"), ("send", "actor 1")]
    assert "straggler" in {one.cause for one in analysis.findings}


@cases("slow, logs, last", (2, 0.0, "opt"), (2, 0.15, "opt"), (0, 0.0, "opt"), (2, 0.0, ""))
def test_ranks_that_meet_outside_of_phases_wait_for_the_slow_one(slow, logs, last, tmp_path):
    """Ranks that meet between phases wait for the slow rank; the path goes through it."""
    folder = Folder()
    for rank in range(3):
        stem = folder.process("actor", rank, world=3)
        for step in range(1, 9):
            at = step + (logs if rank == 0 else 0)
            update = (at + 0.2, at + 0.3 + 0.3 * (rank == slow))
            phases = {"rollout": (at, at + 0.2), "update": update}
            phases |= {last: (step + 0.6, step + 1)} if last else {}
            folder.whole_step(stem, step, phases, (step, step + (1 if last else 0.6)))

    told = analyse(rlprof.read(folder.write(tmp_path / "run", until=12)))

    step = told.steps[4]
    (finding,) = told.findings
    waited = "0.22 s" if logs else "0.30 s"  # the others end later, too
    assert finding.title.startswith(f"All wait {waited} for actor {slow}, the slowest in update")
    assert ("update", f"actor {slow}") in {(part.what, part.where) for part in step.path}
    assert "gaps" not in {one.what for one in step.helps if one.seconds > 0.01}
