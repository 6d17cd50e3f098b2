"""The life of requests in a frontend, in this process or in the process of a server."""

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
    """If a release renames its times, slices show nothing; dropped requests are counted."""
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
    """From its queue to its last token; an aborted one until it left, an open one to the end."""
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
def test_requests_without_a_step_are_told(monkeypatch, tmp_path, *, plugin, dp, ended, told_by):
    """A single replica has served them, by steps that nobody saw; another may have, otherwise."""
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
    """One without requests, one to prepare, and the end of a window of another run."""
    assert server.obey("begin", asks=False) is None
    assert server.obey("prepare") is None
    server.obey("begin", run="r2")
    assert server.obey("end", run="r1") is None


def test_a_window_whose_run_has_died_ends_with_the_next_and_fills_no_server(server, monkeypatch):
    """The next window holds only its own requests; after the limit no more are kept."""
    monkeypatch.setattr(requests, "_MOST", 2)
    server.obey("begin", run="dead")
    server.serve("old")
    server.obey("begin")
    for name in "abc":
        server.serve(name)

    ended = server.obey("end")

    assert names(ended) == ["a", "b"]
    assert json.loads(ended["requests"].splitlines()[0])["dropped"] == 1


def test_a_server_survives_what_it_does_not_understand(server):
    """The answer gives the reason, or there is none."""
    server.open = None

    answer = server.obey("begin")

    assert "another process" in answer["unsupported"]["requests"]
    assert json.loads(watched(server, "{", list))["unsupported"]["requests"].startswith("JSON")


def test_the_file_of_a_server_is_that_of_its_answer(server, tmp_path):
    """Answers of workers are kept apart; none is noted, unless the order itself failed."""
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
