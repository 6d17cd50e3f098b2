"""Processes of one launch share a session, and so a window and its report: an engine's workers."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time

import attrs
import pytest

from rlprof import CaptureError
from rlprof.types import Capture, Target, Window
from rlprof_nsys import _export, _program
from rlprof_nsys._export import exported
from rlprof_nsys._shared import Word, join, joined, leave_word, read_word
from tests.nsys.conftest import SESSION, configured
from tests.nsys.database import OTHER_PID, PID, Database

pytestmark = pytest.mark.slow

WINDOW = Window(3, 4, "rollout")
FIRST, SECOND = (Target("rollout", rank, 2, replica=0, worker=rank) for rank in (0, 1))
CAPTURE = Capture("run", SECOND, WINDOW, "nsys", "host", PID)


@pytest.fixture(name="own")
def _own(tmp_path):
    """The launcher's folder."""
    return str(tmp_path / "own")


@pytest.fixture(name="other")
def _other():
    """Another process of the session."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture(name="theirs")
def _theirs(tmp_path, own, inside, other):
    """The word of a window which the other process has begun."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    word = Word(str(folder), WINDOW.folder, other.pid, str(FIRST))
    leave_word(own, word)
    return word


def notes(folder):
    return json.loads((folder / "nsys.json").read_bytes())


def test_the_same_window_is_joined(inside, theirs, folder, tmp_path):
    """Nsys is not called; the report is said to be the other's, and will be laid in this folder."""
    hooks = configured(self_test=False)

    ranges = hooks.start(window=WINDOW, target=SECOND, folder=folder)
    ranges.push("forward", {"step": 3})
    ranges.pop()
    hooks.stop(window=WINDOW, folder=folder)

    assert inside.calls == []
    assert ranges.applied["report"] == "one with rollout replica 0 worker 0"
    assert joined(tmp_path / "theirs") == {os.getpid(): folder}
    assert notes(folder)["joined"] == {
        "who": str(FIRST),
        "pid": theirs.pid,
        "folder": theirs.folder,
    }
    assert notes(folder)["spans"] == 1


# failures.md: nsys-shared
def test_another_window_is_not_joined(inside, theirs, folder):
    """It is refused, by what is recorded and for whom; what is open stays so."""
    hooks = configured(self_test=False)

    with pytest.raises(CaptureError, match="step_000003/rollout for rollout replica 0 worker 0"):
        hooks.start(window=Window(4, 5, "rollout"), target=SECOND, folder=folder)

    assert inside.calls == []


# failures.md: nsys-hangs
def test_a_window_that_is_beginning_is_joined_once_it_is_open(inside, own, theirs, folder):
    """Nsys is asked once: two that come at once do not both begin."""
    leave_word(own, attrs.evolve(theirs, state="beginning"))
    hooks = configured(self_test=False)
    threading.Timer(0.5, leave_word, [own, theirs]).start()

    hooks.start(window=WINDOW, target=SECOND, folder=folder)

    assert inside.calls == []
    assert notes(folder)["joined"]["pid"] == theirs.pid


# failures.md: nsys-hangs
def test_a_window_that_never_comes_to_be_open_is_refused(inside, own, theirs, folder):
    """Training waits for `start_s` and no longer."""
    leave_word(own, attrs.evolve(theirs, state="beginning"))
    hooks = configured(self_test=False, start_s=1)

    with pytest.raises(CaptureError, match="step_000003/rollout for rollout replica 0 worker 0"):
        hooks.start(window=WINDOW, target=SECOND, folder=folder)

    assert inside.calls == []
    assert read_word(own).pid == theirs.pid


# failures.md: nsys-shared
def test_a_window_that_somebody_else_has_ended_is_partial(inside, own, folder, tmp_path):
    """Who has joined is told the same."""
    guest = tmp_path / "guest"
    guest.mkdir()
    hooks = configured(self_test=False)
    hooks.start(window=WINDOW, target=FIRST, folder=folder)
    assert join(own, read_word(own), guest)
    subprocess.run([inside.path, "stop", f"--session={SESSION}"], check=True)
    time.sleep(0.3)

    with pytest.raises(
        CaptureError, match=r"another process has ended this window, \d+\.\d s before"
    ):
        hooks.stop(window=WINDOW, folder=folder)

    assert notes(folder)["whole"] is False
    said = json.loads((guest / "given.json").read_bytes())
    assert (said["file"], said["why"]) == ("report.nsys-rep", notes(folder)["why"])


# failures.md: nsys-shared
def test_who_has_joined_ends_what_a_dead_process_has_begun(inside, own, theirs, other, folder):
    """Nobody else would before the next window, and the report is wanted now."""
    hooks = configured(self_test=False)
    hooks.start(window=WINDOW, target=SECOND, folder=folder)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # a zombie until its parent looks

    hooks.stop(window=WINDOW, folder=folder)

    assert inside.verbs == ["stop"]
    assert read_word(own) is None


# failures.md: nsys-shared
def test_a_window_of_a_dead_process_is_ended(inside, own, theirs, other, folder):
    """Else the session could never record again."""
    session = inside.home / f"{SESSION}.session"
    session.write_text(json.dumps({"pid": os.getpid(), "output": f"{theirs.folder}/report"}))
    other.kill()
    other.wait()
    hooks = configured(self_test=False)

    hooks.start(window=WINDOW, target=SECOND, folder=folder)
    hooks.stop(window=WINDOW, folder=folder)

    assert inside.verbs == ["stop", "start", "stop"]
    assert notes(folder)["whole"] is True


def test_the_report_is_given_to_who_has_joined(inside, own, folder, tmp_path):
    """The same file, once it is whole, with what is to be said of it."""
    guest = tmp_path / "guest"
    guest.mkdir()
    hooks = configured(self_test=False)
    hooks.start(window=WINDOW, target=FIRST, folder=folder)

    assert join(own, read_word(own), guest)
    hooks.stop(window=WINDOW, folder=folder)

    assert (guest / "report.nsys-rep").samefile(folder / "report.nsys-rep")
    said = json.loads((guest / "given.json").read_bytes())
    assert (said["file"], said["why"]) == ("report.nsys-rep", "")
    assert read_word(own) is None


def test_a_session_that_is_busy_is_waited_for(inside, own, folder):
    """Another process may be at its self-test, of which there is no word."""
    session = inside.home / f"{SESSION}.session"
    idle = session.read_text()
    session.write_text(json.dumps({"pid": os.getpid(), "output": "/nowhere/report"}))
    hooks = configured(self_test=False)
    threading.Timer(0.5, session.write_text, [idle]).start()

    hooks.start(window=WINDOW, target=FIRST, folder=folder)

    assert set(inside.verbs) == {"start"}
    assert read_word(own).folder == str(folder)


def test_one_process_tries_for_all_whether_ranges_are_seen(inside):
    """The second one of a session reads what the first has found."""
    configured()
    tried = len(inside.calls)

    configured()

    assert tried > 0
    assert len(inside.calls) == tried


# What becomes of a report that is shared


@pytest.fixture(name="shared")
def _shared(tmp_path, monkeypatch):
    """A folder with the tables of a report that two processes share; there is no nsys here."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_program, "_USUAL", ())
    folder = tmp_path / "shared"
    folder.mkdir()
    made = Database(folder / "report.sqlite")
    for pid, name in ((PID, "mine"), (OTHER_PID, "theirs")):
        made.domain(1, "rlprof", pid=pid)
        made.range(1, 2, name, pid=pid, tid=pid)
    made.device("CUPTI_ACTIVITY_KIND_KERNEL", 3, 4, 1, shortName=made.text("kernel"))
    made.write()
    return folder


def names(out):
    """Return what the events in the trace below *out* are called."""
    (file,) = out.glob("*.trace.json.gz")
    with gzip.open(file) as stream:
        return [e["name"] for e in json.load(stream)["traceEvents"] if e["ph"] == "X"]


def say(folder, **said):
    (folder / "nsys.json").write_text(json.dumps(said))


JOINED = {"joined": {"who": str(FIRST), "pid": OTHER_PID}, "why": "", "spans": 1}
NOW = time.time_ns()


# failures.md: nsys-shared
@pytest.mark.parametrize(
    ("after_s", "status", "note"),
    [
        (0, "whole", "it shares the report of rollout replica 0 worker 0"),
        (5, "partial", "ended it 5.0 s before this process did"),
    ],
)
def test_who_has_joined_has_a_trace_of_its_own_events(shared, tmp_path, after_s, status, note):
    """And no report beside it, for that is with the first one; it is cut if that ended early."""
    say(shared, wall=[[NOW, 1], [NOW + after_s * 10**9, 2]], **JOINED)
    (shared / "given.json").write_text(json.dumps({"file": "x", "why": "", "ended_ns": NOW}))

    (made,) = exported(CAPTURE, shared, tmp_path)

    assert (made.kind, made.status) == ("trace", status)
    assert made.note.endswith(note)
    assert names(tmp_path) == ["mine", "kernel"]


def test_who_has_begun_it_has_the_events_of_nobody_who_has_joined(shared, tmp_path):
    """So no event is on the timeline twice."""
    say(shared, whole=True, why="", spans=1)
    (shared / f"joined-{PID}").write_text(json.dumps({"pid": PID, "folder": "/nowhere"}))

    made = exported(attrs.evolve(CAPTURE, pid=OTHER_PID, target=FIRST), shared, tmp_path)

    assert [one.status for one in made] == ["whole", "whole"]
    assert names(tmp_path) == ["theirs"]


# failures.md: nsys-shared
def test_a_window_that_nobody_has_ended_is_told(shared, tmp_path, monkeypatch):
    """The process that had begun it is waited for, if it lives, and named."""
    monkeypatch.setattr(_export, "_GIVEN_S", 0.2)
    mine = {**JOINED, "joined": {"who": str(FIRST), "pid": os.getpid()}}
    say(shared, wall=[[NOW, 1], [NOW, 2]], **mine)

    with pytest.raises(CaptureError, match=r"in the report of rollout replica 0 worker 0"):
        exported(CAPTURE, shared, tmp_path)


@pytest.fixture(name="killed")
def _killed(shared, tmp_path):
    """The folder of one that has joined; the one with the report has died, and was killed first."""
    guest = tmp_path / "guest"
    guest.mkdir()
    (shared / "report.nsys-rep").write_bytes(b"a report")
    (shared / f"joined-{PID}").write_text(json.dumps({"pid": PID, "folder": str(guest)}))
    leader = {"who": str(FIRST), "pid": 2**22 + 1, "folder": str(shared)}
    say(guest, joined=leader, why="the process ended inside the window", wall=[[NOW, 1]])
    return guest


# failures.md: nsys-shared
def test_who_has_joined_a_dead_process_takes_its_report(shared, killed, tmp_path):
    """The launcher has had nsys write it: no event of anybody is lost with the one that began."""
    (shared / "report.sqlite").rename(killed / "report.sqlite")

    (made,) = exported(CAPTURE, killed, tmp_path)

    assert (killed / "report.nsys-rep").samefile(shared / "report.nsys-rep")
    assert (made.kind, made.status) == ("trace", "partial")
    assert made.note == "the process ended inside the window"
    assert names(tmp_path) == ["mine", "kernel"]
