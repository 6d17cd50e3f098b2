"""What `stacks` shows of a program."""

from __future__ import annotations

import gzip
import json
import threading

import rlprof


def record(home, body):
    """Record one window of *body*; return the events of its trace."""
    config = {
        "run_dir": str(home / "runs"),
        "scratch_dir": str(home / "scratch"),
        "tool": "stacks",
        "steps": [1],
        "roles": {"actor": {}},
        "tools": {"stacks": {"hz": 200}},
    }
    with rlprof.open(config) as prof:
        prof.step(1)
        with prof.phase("update_actor"):
            body()
    (capture,) = rlprof.read(prof.run_dir).captures
    assert capture.state == "whole", capture.notes
    with gzip.open(prof.run_dir / capture.artifacts[0].path) as file:
        return json.load(file)["traceEvents"]


def test_a_function_of_another_thread_is_seen(tmp_path):
    """What a second thread was doing stands under the name of that thread."""
    enough, seen = threading.Event(), threading.Event()

    def waits_in_the_background():
        seen.set()
        enough.wait(30)

    other = threading.Thread(target=waits_in_the_background, name="loader")
    other.start()
    seen.wait(30)
    try:
        events = record(tmp_path, lambda: None)
    finally:
        enough.set()
        other.join()

    (tid,) = [e["tid"] for e in events if e["ph"] == "M" and e["args"]["name"] == "loader"]
    names = [e["name"] for e in events if e["ph"] == "X" and e["tid"] == tid]
    assert any(name.startswith("waits_in_the_background (") for name in names)


def test_phases_are_slices(tmp_path):
    """The phase of the window is a slice on the thread that entered it."""
    events = record(tmp_path, lambda: None)

    (phase,) = [e for e in events if e["name"] == "update_actor"]
    assert phase["dur"] >= 0
    assert phase["tid"] == threading.main_thread().native_id
