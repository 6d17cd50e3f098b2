"""Followers: processes whose windows another process opens, here the test."""

import json
import multiprocessing
import os
import signal
import time
from types import SimpleNamespace

import attrs
import pytest

import rlprof
from rlprof.rundir import Here
from rlprof_remote import closing
from rlprof_remote import leader as leaders
from tests.fakes import tools
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

WINDOW = rlprof.Window(2, 3, "update")


def follow(config, run, leader, questions):
    """Follow in an own process; answer each question until it is None."""
    tools.register()
    follower = rlprof.follow(config, run=run, role="actor", rank=1, world_size=2, leader=leader)
    questions.send("ready")
    while (asked := questions.recv()) is not None:
        method, *args = asked
        questions.send(getattr(follower, method)(*args))
    follower.close()
    questions.send("closed")


class Member:
    """A following process and the pipe to it."""

    def __init__(self, config, run, leader):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=follow, args=(config, run, leader, theirs))
        self.process.start()
        assert self.pipe.recv() == "ready"

    def ask(self, *asked):
        self.pipe.send(asked)
        return self.pipe.recv()

    def close(self):
        self.pipe.send(None)
        assert self.pipe.recv() == "closed"
        self.process.join()


@pytest.fixture(name="lead")
def _lead(request, config, calls):
    """Open the leader's session; yield it and a function that starts a follower."""
    del calls
    roles = {"actor": {"ranks": "all", "phases": ["update"]}}
    # no tool that waits for a thread
    given = config(roles=roles, tool="anywhere", limits=getattr(request, "param", {}))
    members = []
    with rlprof.open(given, role="driver", rank=0, world_size=1) as prof:

        def make(leader=None):
            members.append(Member(given, str(prof.run_dir), leader))
            return members[-1]

        yield prof, make
    for member in members:
        member.process.kill()
        member.process.join()
        member.process.close()


def states(prof):
    return [one.state for one in rlprof.read(prof.run_dir).processes if one.target.role == "actor"]


def captures(prof):
    return [(c.window.id, str(c.target), c.state) for c in rlprof.read(prof.run_dir).captures]


def test_a_follower_opens_and_closes_windows_on_order(lead):
    """A follower records windows on order and refuses odd ones; a new one ends one left open."""
    prof, make = lead
    member = make()

    assert member.ask("end", WINDOW) == "2/update is not open"
    for window in (WINDOW, rlprof.Window(3, 4, "update"), rlprof.Window(3, 4, "update", 1)):
        assert member.ask("begin", window) == ""
        member.ask("push", "update")
        assert member.ask("end", window) == ""
    assert member.ask("begin", WINDOW) == "the window 2/update was recorded before"
    for step in (4, 5):  # whose ends are lost
        member.ask("begin", rlprof.Window(step, step + 1, "update"))
    member.close()

    names = ["2/update", "3/update", "3/update.1", "4/update", "5/update"]
    assert captures(prof) == [(name, "actor 1/2", "whole") for name in names]
    assert "closed early: the next window began" in rlprof.read(prof.run_dir).captures[3].notes
    spans = [s for s in rlprof.read(prof.run_dir).spans() if "actor" in s.process]
    assert [(span.name, span.step, span.occurrence, span.parent) for span in spans] == [
        ("update", 2, 0, None), ("update", 3, 0, None), ("update", 3, 1, None),
    ]  # fmt: skip


# failures.md: driver-ended
def test_a_follower_closes_after_its_leaders_process_was_killed(lead):
    """A follower whose leader was killed closes its window and session by itself."""
    prof, make = lead
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=time.sleep, args=(60,))
    other.start()
    member = make(attrs.evolve(rlprof.Leader.of(prof), here=Here.now(other.pid), manifest=""))
    member.ask("begin", WINDOW)

    os.kill(other.pid, signal.SIGKILL)
    other.join()
    other.close()
    wait_until(lambda: states(prof) == ["ended"])

    (capture,) = rlprof.read(prof.run_dir).captures
    assert capture.state == "whole"
    assert "closed early: its driver has ended" in capture.notes
    assert member.ask("begin", rlprof.Window(3, 4, "update")) == "its session is closed"


def test_a_follower_closes_with_its_leaders_session(lead, tmp_path):
    """A follower closes its session once the leader's manifest has ended."""
    prof, make = lead
    manifest = tmp_path / "driver.jsonl"
    manifest.write_text('{"event":"process"}\n')
    make(rlprof.Leader(Here.now(), str(manifest)))
    before = states(prof)

    manifest.write_text('{"event":"process"}\n{"event":"ended"}\n')
    wait_until(lambda: states(prof) == ["ended"])

    assert before == ["running"]


# failures.md: driver-ended
def test_the_silence_of_a_leader_elsewhere_ends_with_new_lines(tmp_path, monkeypatch):
    """A leader elsewhere is silent since its manifest grew or it asked; after its end, for ever."""
    now, manifest = [0.0], tmp_path / "driver.jsonl"
    monkeypatch.setattr(leaders, "time", SimpleNamespace(monotonic=lambda: now[0]))
    manifest.write_text('{"event":"process"}\n')
    here = Here("elsewhere", "another boot", "pid:[1]", 1, "1")
    pulse = leaders.Pulse(rlprof.Leader(here, str(manifest)))

    def silence(at):
        now[0] = at
        return pulse.silence_s()

    assert (silence(0), silence(50)) == (0, 50)
    manifest.write_text('{"event":"process"}\n{"event":"clock"}\n')
    os.utime(manifest, (1, 1))
    assert (silence(50), silence(80)) == (0, 30)
    pulse.heard()
    assert silence(90) == 10
    manifest.write_text('{"event":"process"}\n{"event":"clock"}\n{"event":"ended"}\n')
    assert silence(90) == float("inf")


# failures.md: window-time
@pytest.mark.parametrize("lead", [{"window_s": 0.5}], indirect=True)
def test_a_follower_that_cannot_see_its_leader_keeps_its_limit(lead, tmp_path):
    """A follower that cannot see its leader closes its window at limits.window_s."""
    prof, make = lead
    leader = rlprof.Leader(Here("elsewhere", "boot", "pid:[1]", 1, "1"), str(tmp_path / "nowhere"))
    member = make(leader)
    member.ask("begin", WINDOW)

    wait_until(lambda: captures(prof)[0][2] != "recording")
    member.close()

    (capture,) = rlprof.read(prof.run_dir).captures
    assert capture.state == "whole"
    assert "closed early: limits.window_s 0.5 was reached" in capture.notes


def test_close_waits_for_followers_up_to_a_limit(tmp_path, monkeypatch):
    """Close logs once which process it waits for, and after the limit which it did not wait for."""
    monkeypatch.setattr(closing, "_SILENT_S", 0)
    file = tmp_path / "manifest" / "rollout-0-host-1-replica2-worker0.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps({"here": attrs.asdict(Here.now())}) + "\n")
    (file.parent / "rollout-0-host-1-replica3-worker0.jsonl").write_bytes(file.read_bytes())
    said = []
    config = SimpleNamespace(limits=SimpleNamespace(export_timeout_s=0.3))
    session = SimpleNamespace(run_dir=tmp_path, config=config)
    session.log = lambda *text: said.append(text[0])
    wait = closing.Wait()
    wait.replicas.add(("rollout", 2))

    wait(session)

    assert said == [
        f"waits up to 0.3 s for the exports of {file.stem}",
        f"did not wait for {file.stem}",
    ]
