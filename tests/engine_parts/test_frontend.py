"""The requests of a server: its own process watches them as the orders of a window pass."""

from __future__ import annotations

import json

import pytest

from rlprof import CaptureError
from rlprof_engine import requests
from rlprof_engine.frontend import Served, parted, watched


class Watching(requests.Requests):
    attribute = "open"

    def left(self, name, state, might_be_gone):
        self._gone.append(name)

    def lines(self, there):
        return [{"id": name} for name in (*self._gone, *(name for name, _ in there))]


class Server:
    """A frontend with requests in a dict, and a function that carries out an order there."""

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


def test_a_window_holds_the_requests_that_were_served_in_it(server):
    """The request before the window is not in it; the one that is still open is."""
    server.serve("before")
    begun = server.obey("begin")
    server.serve("within")
    server.open["still"] = object()

    ended = server.obey("end")
    server.serve("after")

    assert begun == {"state": "frontend", "unsupported": {}}
    assert names(ended) == ["within", "still"]
    assert type(server.open) is dict


def test_an_order_that_does_not_concern_requests_has_no_answer(server):
    """One without requests, one to prepare, and the end of a window of another run."""
    assert server.obey("begin", asks=False) is None
    assert server.obey("prepare") is None
    server.obey("begin", run="r2")
    assert server.obey("end", run="r1") is None


def test_a_window_whose_run_has_died_ends_with_the_next(server):
    """The next window holds only its own requests."""
    server.obey("begin", run="dead")
    server.serve("old")
    server.obey("begin")
    server.serve("new")

    assert names(server.obey("end")) == ["new"]


def test_requests_of_a_dead_run_do_not_fill_a_server(server, monkeypatch):
    """After the limit no more are kept."""
    monkeypatch.setattr(requests, "_MOST", 2)
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

    assert list(answer["unsupported"]) == ["requests"]
    assert json.loads(watched(server, "{", list))["unsupported"]["requests"].startswith("JSON")


def test_the_file_of_a_server_is_that_of_its_answer(server, tmp_path):
    """Answers of workers are kept apart."""
    begun = server.obey("begin")
    server.serve("a")
    worker = {"state": "ended", "worker": 0}
    workers, frontends = parted([worker, server.obey("end")])
    served = Served([begun])
    served.answers = frontends

    served.stop(tmp_path)

    assert workers == [worker]
    assert (tmp_path / requests.FILE).read_text() == frontends[0]["requests"]
    assert served.unsupported == {}
    assert list(Served([]).unsupported) == ["requests"]


def test_a_server_that_returns_nothing_is_noted(server, tmp_path):
    """Unless the order itself failed, which is noted already."""
    served = Served([server.obey("begin")])
    served.stop(tmp_path)
    served.answers = []

    with pytest.raises(CaptureError, match="the server returned none"):
        served.stop(tmp_path)
