"""The life of requests: how they leave a frontend, and what a window without them says."""

from __future__ import annotations

import gzip
import json

import pytest

from rlprof import Capture, Target, Window
from rlprof_engine import requests
from rlprof_engine.requests import Watched, begun_in, trace_of


def test_a_frontend_goes_on_whatever_we_do_with_its_requests():
    """What we raise stays with us, and between windows nobody is called."""
    watched = Watched({"a": 1, "b": 2})
    watched.left = lambda *_: 1 / 0

    assert watched.pop("a") == 1
    watched.left = None
    del watched["b"]
    assert watched == {}


@pytest.fixture(name="trace")
def _trace(tmp_path):
    """Return a function that makes the artifact of a window with those lines."""
    capture = Capture("r1", Target("rollout"), Window(1, 2), "vllm", "h", 1)

    def trace(*lines, steps=0, dropped=0):
        requests.write(tmp_path, requests.text_of(10.0, 20.0, lines, dropped=dropped))
        return trace_of(capture, tmp_path / requests.FILE, tmp_path, steps=steps)

    return trace


def test_a_window_without_requests_is_idle_only_if_the_engine_was(trace):
    """If it ran steps somebody asked it, whom nobody here has seen."""
    idle, unseen = trace(), trace(steps=3)

    assert (idle.status, idle.note.split(":")[0]) == ("whole", "idle")
    assert unseen.status == "partial"
    assert "ran 3 steps" in unseen.note


WHOLE = {"id": "a", "left": 15.0, "queued_ts": 11.0, "first_token_ts": 12.0}


def test_requests_that_were_not_kept_or_have_no_times_are_noted(trace):
    """A release that renames times leaves slices that show nothing; dropped ones are counted."""
    untimed = trace({"id": "a", "left": 15.0, "tokens": 4}, {"id": "b", "left": None})
    dropped = trace(WHOLE, dropped=3)

    assert trace(WHOLE).note == ""
    assert untimed.note.startswith("1 requests have no times")
    assert (dropped.status, dropped.note) == ("partial", "3 more requests were not kept")


def test_slices_lie_where_the_request_was(trace, tmp_path):
    """A window that began at 10 s is the zero of a request that was queued at 11 s."""
    made = trace(WHOLE)

    with gzip.open(tmp_path / made.path) as text:
        events = json.load(text)["traceEvents"]
    whole = next(one for one in events if one["name"] == "request a")
    assert (whole["ts"], whole["dur"]) == (1_000_000, 4_000_000)
    threads = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert threads == {whole["tid"]: "request lane 1"}


def test_first_tokens_in_the_window_are_counted(tmp_path):
    """Those of a request from before are not, and a damaged file has none."""
    before, within = ({"left": None, "first_token_ts": at} for at in (9.0, 12.0))
    lines = [{"id": "a", **before}, {"id": "b", **within}, {"id": "c", "left": 11.0}]
    requests.write(tmp_path, requests.text_of(10.0, 20.0, lines))
    (tmp_path / "damaged").write_text("{")

    assert begun_in(tmp_path / requests.FILE) == 1
    assert begun_in(tmp_path / "damaged") == 0
