"""Lives of requests in a frontend, in this process or in the process of a server."""

import gzip
import json

import pytest

from rlprof import Capture, CaptureError, Target, Window
from rlprof_engine import requests
from rlprof_engine.frontend import Served, parted, watched
from rlprof_engine.recording import IDLE
from rlprof_engine.requests import Watched, begun_in, trace_of
from rlprof_sglang import Sglang
from rlprof_vllm import Vllm
from tests.cases import cases
from tests.engine_parts.lab import Driven


def test_a_frontend_works_even_if_watching_its_requests_fails():
    """An error of rlprof does not reach the frontend, and its requests work as a dict."""
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
    """A window without requests is idle if the engine ran no step, and partial otherwise."""
    idle, unseen = trace(), trace(steps=3)

    assert (idle.status, idle.note.split(":")[0]) == ("whole", "idle")
    assert unseen.status == "partial"
    assert "ran 3 steps" in unseen.note


WHOLE = {"id": "a", "left": 15.0, "queued_ts": 11.0, "first_token_ts": 12.0}


def test_requests_that_were_not_kept_or_have_no_times_are_noted(trace):
    """Requests without times, and requests that were dropped, are counted in a note."""
    untimed = trace({"id": "a", "left": 15.0, "tokens": 4}, {"id": "b", "left": None})
    dropped = trace(WHOLE, dropped=3)

    assert trace(WHOLE).note == ""
    assert untimed.note.startswith("1 requests have no times")
    assert (dropped.status, dropped.note) == ("partial", "3 more requests were not kept")


@cases(
    "line, dur",
    ({}, 4_000_000),
    ({"last_token_ts": 14.0}, 3_000_000),
    ({"last_token_ts": 14.0, "finish": "abort"}, 4_000_000),
    ({"last_token_ts": 14.0, "left": None}, 9_000_000),
)
def test_slices_lie_where_the_request_was(trace, tmp_path, line, dur):
    """A slice lasts from the queue to the last token, to an abort, or to the window's end."""
    made = trace(WHOLE | line)

    with gzip.open(tmp_path / made.path) as text:
        events = json.load(text)["traceEvents"]
    whole = next(one for one in events if one["name"] == "request a")
    assert (whole["ts"], whole["dur"]) == (1_000_000, dur)
    threads = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert threads == {whole["tid"]: "request lane 1"}


NONE, SOME = ({"state": "ended", "iterations": count} for count in (0, 3))


@pytest.mark.parametrize("plugin", [Vllm, Sglang])
@cases(
    "dp, ended, told_by",
    (1, [NONE, NONE], [Vllm, Sglang]),
    (1, [NONE | {"iterations": None}], [Vllm, Sglang]),
    (1, [SOME, NONE], []),
    (1, [{"state": "idle", "why": IDLE}], [Sglang]),
    (1, [{"state": "idle", "why": "by skip"}], []),
    (2, [NONE], []),
)
def test_requests_without_a_step_are_noted(monkeypatch, tmp_path, *, plugin, dp, ended, told_by):
    """Requests that were answered without a recorded step are noted, if there is one replica."""
    driven, lines = Driven(monkeypatch, tmp_path, plugin, None), [WHOLE | {"left": None}] * 2
    lines += [{"id": "older", "left": None, "first_token_ts": 9.0}, {"id": "c", "left": 11.0}]
    notes = {"way": "worker", "answers": {"ended": ended}, "facts": {"dp": dp}}
    (others := driven.folder / f"{plugin.__name__.lower()}.json").write_text(json.dumps(notes))
    requests.write(driven.folder, requests.text_of(10.0, 20.0, lines))

    *_, summary = driven.call("export")

    assert ("2 requests were answered, but no" in summary.note) is (plugin in told_by)
    assert begun_in(others) == 0


class Watching(requests.Requests):
    attribute = "open"

    def left(self, name, state, might_be_gone):
        self._gone.append(name)

    def lines(self, there):
        return [{"id": name} for name in (*self._gone, *(name for name, _ in there))]


class Server:
    def __init__(self):
        self.open = {}

    def obey(self, verb, *, run="r1", window="2/rollout", asks=True):
        order = json.dumps({"verb": verb, "run": run, "window": window})
        said = json.dumps({"order": order, "requests": asks})
        text = watched(self, said, lambda: Watching(self))
        return json.loads(text) if text else None

    def serve(self, name):
        self.open[name] = object()
        self.open.pop(name)


@pytest.fixture(name="server")
def _server():
    return Server()


def names(answer):
    return [json.loads(line)["id"] for line in answer["requests"].splitlines()[1:]]


def test_an_order_that_does_not_concern_requests_has_no_answer(server):
    """An order without requests, a prepare, and the end of another run have no answer."""
    assert server.obey("begin", asks=False) is None
    assert server.obey("prepare") is None
    server.obey("begin", run="r2")
    assert server.obey("end", run="r1") is None


def test_a_window_whose_run_has_died_ends_with_the_next_and_fills_no_server(server, monkeypatch):
    """A begin ends the window of a dead run, and a window keeps requests only up to a limit."""
    monkeypatch.setattr(requests, "_MOST", 2)
    server.obey("begin", run="dead")
    server.serve("old")
    server.obey("begin")
    for name in "abc":
        server.serve(name)

    ended = server.obey("end")

    assert names(ended) == ["a", "b"]
    assert json.loads(ended["requests"].splitlines()[0])["dropped"] == 1


def test_a_server_survives_an_order_that_it_cannot_read(server):
    """An order that cannot be read or obeyed does not raise; its answer has the reason."""
    server.open = None

    answer = server.obey("begin")

    assert "another process" in answer["unsupported"]["requests"]
    assert json.loads(watched(server, "{", list))["unsupported"]["requests"].startswith("JSON")


def test_the_file_of_a_server_is_that_of_its_answer(server, tmp_path):
    """The file of requests is the frontend's answer; without one they are unsupported."""
    served = Served([server.obey("begin")])
    served.stop(tmp_path)  # no order has failed, and none was answered
    server.serve("a")
    worker = {"state": "ended", "worker": 0}
    workers, frontends = parted([worker, server.obey("end")])
    served.answers = frontends

    served.stop(tmp_path)

    assert workers == [worker]
    assert (tmp_path / requests.FILE).read_text() == frontends[0]["requests"]
    assert served.unsupported == {}
    assert list(Served([]).unsupported) == ["requests"]
    served.answers = []
    with pytest.raises(CaptureError, match="the server returned none"):
        served.stop(tmp_path)
