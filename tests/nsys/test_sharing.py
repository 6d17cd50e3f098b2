"""Workers of one launch share an nsys session, and so a window and its report."""

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import attrs
import pytest

from rlprof import CaptureError
from rlprof.types import Capture, Target, Window
from rlprof_nsys import _export
from rlprof_nsys._export import exported
from rlprof_nsys._shared import Word, join, joined, leave_word, read_word
from tests.cases import cases
from tests.nsys.conftest import SESSION, configured, notes
from tests.nsys.database import OTHER_PID, PID, Database

pytestmark = pytest.mark.slow

WINDOW = Window(3, 4, "rollout")
FIRST, SECOND = (Target("rollout", rank, 2, replica=0, worker=rank) for rank in (0, 1))
CAPTURE = Capture("run", SECOND, WINDOW, "nsys", "host", PID)


@pytest.fixture(name="own")
def _own(tmp_path):
    return str(tmp_path / "own")


@pytest.fixture(name="other")
def _other():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture(name="theirs")
def _theirs(tmp_path, own, inside, other):
    """The word of a window that the other process has begun."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    word = Word(str(folder), WINDOW.folder, other.pid, str(FIRST))
    leave_word(own, word)
    return word


# failures.md: nsys-hangs
@pytest.mark.parametrize("state", ["open", "beginning"])
def test_the_same_window_is_joined(inside, own, theirs, folder, state):
    """A worker joins the open window of another without a call of nsys, and notes the other."""
    leave_word(own, attrs.evolve(theirs, state=state))
    hooks = configured()
    threading.Timer(0.5, leave_word, [own, theirs]).start()

    ranges = hooks.start(window=WINDOW, target=SECOND, folder=folder)
    ranges.push("forward", {"step": 3})
    ranges.pop()
    hooks.stop(window=WINDOW, folder=folder)

    assert inside.calls == []
    assert ranges.applied["report"] == "one with rollout replica 0 worker 0"
    assert joined(Path(theirs.folder)) == {os.getpid(): folder}
    leader = {"who": str(FIRST), "pid": theirs.pid, "folder": theirs.folder}
    assert (notes(folder)["joined"], notes(folder)["spans"]) == (leader, 1)


# failures.md: nsys-hangs, nsys-shared
@pytest.mark.parametrize(("state", "step"), [("open", 4), ("beginning", 3)])
def test_a_window_that_cannot_be_joined_is_refused(own, theirs, folder, state, step):
    """Another window, or one that does not open within `start_s`, is refused by its name."""
    leave_word(own, attrs.evolve(theirs, state=state))
    hooks = configured(start_s=1)

    with pytest.raises(CaptureError, match="step_000003/rollout for rollout replica 0 worker 0"):
        hooks.start(window=Window(step, step + 1, "rollout"), target=SECOND, folder=folder)

    assert read_word(own) == attrs.evolve(theirs, state=state)


# failures.md: nsys-shared
@pytest.mark.parametrize("is_ended", [False, True])
def test_a_worker_that_joined_gets_the_report(inside, own, folder, tmp_path, is_ended):
    """A worker that joined gets the report, and whether another process ended the window."""
    hooks, guest = configured(), tmp_path / "guest"
    guest.mkdir()
    hooks.start(window=WINDOW, target=FIRST, folder=folder)
    assert join(own, read_word(own), guest)
    if is_ended:
        subprocess.run([inside.path, "stop", f"--session={SESSION}"], check=True)
        with pytest.raises(CaptureError, match="another process has ended this window"):
            hooks.stop(window=WINDOW, folder=folder)
    else:
        hooks.stop(window=WINDOW, folder=folder)

    assert (guest / "report.nsys-rep").samefile(folder / "report.nsys-rep")
    said = json.loads((guest / "given.json").read_bytes())
    why = "another process has ended this window" if is_ended else ""
    assert (said["file"], said["why"], notes(folder)["why"]) == ("report.nsys-rep", why, why)
    assert notes(folder)["whole"] is not is_ended
    assert read_word(own) is None


# failures.md: nsys-shared
def test_a_window_of_a_dead_process_is_ended(inside, theirs, other, folder):
    """A window that a dead process left open is stopped before the next one starts."""
    session = inside.home / f"{SESSION}.session"
    session.write_text(json.dumps({"pid": os.getpid(), "output": f"{theirs.folder}/report"}))
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # a zombie until its parent looks
    hooks = configured()

    hooks.start(window=WINDOW, target=SECOND, folder=folder)
    hooks.stop(window=WINDOW, folder=folder)

    assert inside.verbs == ["stop", "start", "stop"]
    assert notes(folder)["whole"] is True


def test_one_process_of_a_session_runs_the_self_test(inside):
    """The second process of a session reads the result of the first one's self-test."""
    configured(self_test=True)
    tried = len(inside.calls)

    configured(self_test=True)

    assert 0 < tried == len(inside.calls)


# Exports of a report that is shared


@pytest.fixture(name="shared")
def _shared(nsys, folder):
    """Return a function that writes the notes of a report with two processes."""
    made = Database(nsys.home / "database")
    for pid, name in ((PID, "mine"), (OTHER_PID, "theirs")):
        made.domain(1, "rlprof", pid=pid)
        made.range(1, 2, name, pid=pid, tid=pid)
    made.device("CUPTI_ACTIVITY_KIND_KERNEL", 3, 4, 1, shortName=made.text("kernel"))
    made.write()
    (folder / "report.nsys-rep").write_bytes(b"a report")

    def say(**said):
        said = {"nsys": nsys.path, "spans": 1, "why": "", **said}
        (folder / "nsys.json").write_text(json.dumps(said))

    return say


LEADER = {"who": str(FIRST), "pid": OTHER_PID}
NOW = time.time_ns()


# failures.md: nsys-shared
@cases(
    "after_s, note",
    (0, "it shares the report of rollout replica 0 worker 0"),
    (5, "ended it 5.0 s before this process did"),
)
def test_a_worker_that_joined_exports_its_own_events(shared, folder, tmp_path, after_s, note):
    """A worker that joined exports its own events; an early end of the window makes it partial."""
    shared(wall=[NOW, NOW + after_s * 10**9], joined=LEADER)
    (folder / "given.json").write_text(json.dumps({"file": "x", "why": "", "ended_ns": NOW}))

    (made,) = exported(CAPTURE, folder, tmp_path)

    assert (made.kind, made.status) == ("trace", "partial" if after_s else "whole")
    assert made.note.endswith(note)
    with gzip.open(tmp_path / made.path) as stream:
        events = json.load(stream)["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["mine", "kernel"]


# failures.md: nsys-shared
@pytest.mark.parametrize("pid", [os.getpid(), 2**22 + 1], ids=["alive", "dead"])
def test_a_joined_window_that_never_ended_is_an_error(shared, folder, tmp_path, monkeypatch, pid):
    """If a joined window never ended, the export fails and names the holder of the report."""
    monkeypatch.setattr(_export, "_GIVEN_S", 0.2)
    shared(wall=[NOW, NOW], joined={**LEADER, "pid": pid})

    with pytest.raises(CaptureError, match=r"in the report of rollout replica 0 worker 0"):
        exported(CAPTURE, folder, tmp_path)
