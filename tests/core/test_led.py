"""Windows that another process decides on: the calls that fleets and engines stand on."""

from __future__ import annotations

import pytest

import rlprof
from rlprof.config import check_config
from rlprof.types import Led
from tests.fakes import tools

pytestmark = pytest.mark.slow

WINDOW = rlprof.Window(2, 3, "update")


@pytest.fixture(name="prof")
def _prof(config, calls):
    """Open the session of a driver whose actors record phases of step 2."""
    del calls
    roles = {"actor": {"ranks": "all", "phases": ["update"]}}
    with rlprof.open(config(roles=roles, tool="anywhere", steps=[2]), role="driver") as prof:
        yield prof


@pytest.fixture(name="led")
def _led(prof):
    """Open a session that is led beside it, as an engine's worker in the same process has."""
    led = Led(prof.run_dir, replica=0, worker=0)
    with rlprof.open(prof.config, role="actor", rank=0, world_size=1, led=led) as session:
        yield session


def test_a_session_that_is_led_records_the_windows_it_is_given(prof, led):
    """Its phases have the step of the window, or the step that it was told to go to."""
    assert led.open_window(WINDOW) == ""
    with led.phase("update"):
        pass
    led.go_to(3)
    with led.phase("update"):
        pass
    led.close_window("end")
    led.close()

    run = rlprof.read(prof.run_dir)
    assert [(one.window.id, one.state) for one in run.captures] == [("2/update", "whole")]
    spans = [(one.name, one.step) for one in run.spans() if "actor" in one.process]
    assert spans == [("update", 2), ("update", 3)]


def test_a_window_that_cannot_open_is_answered_with_the_reason(led):
    """One that is open, one that was recorded, and any after the session has closed."""
    assert led.open_window(WINDOW) == ""
    assert led.open_window(rlprof.Window(3, 4)) == "the window 2/update was still open"
    led.close_window("end")
    assert led.open_window(WINDOW) == "the window 2/update was recorded before"
    assert led.current_step is None
    led.close()
    assert led.open_window(rlprof.Window(4, 5)) == "its session is closed"


class Members:
    """Members that note what is asked of them, in order."""

    why_full = ""

    def __init__(self):
        self.asked = []

    def take(self, uses):
        self.asked.append(("take", *(use.name for use in uses)))

    def keys(self, demand):
        return [{"target": {"role": "actor", "rank": rank}} for rank in (0, 1)]

    def prepared(self, uses, window, demand):
        self.asked.append(("prepared", window.id))
        return self

    def start(self):
        self.asked.append(("start",))

    def stop(self, reason):
        self.asked.append(("stop", reason))

    def enter(self, key, name, step):
        self.asked.append(("enter", name, step))

    def leave(self, key):
        self.asked.append(("leave",))

    def watch(self):
        pass

    def end(self):
        self.asked.append(("end",))


def test_members_are_led_by_the_schedule_of_their_role(prof):
    """The window opens with its phase; phases inside it, which may overlap, are passed on."""
    tools.register()
    checked, uses = check_config(prof.config)
    members = Members()
    prof.lead(rlprof.Target("actor", 0, 2), checked.schedule("actor"), uses["actor"], members)

    for _ in prof.steps((1, 2, 3)):
        with prof.phase("update"):
            first, second = prof.phase("forward"), prof.phase("backward")
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            second.__exit__(None, None, None)
    prof.close()

    inner = [("enter", "forward", 2), ("enter", "backward", 2), ("leave",), ("leave",)]
    assert members.asked == [
        ("take", "anywhere"),
        ("prepared", "2/update"),
        ("start",),
        *inner,
        ("stop", "end"),
        ("end",),
    ]
