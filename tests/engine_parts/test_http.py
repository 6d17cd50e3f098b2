"""An engine's server, which answers what it likes."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rlprof import CaptureError
from rlprof_engine.http import Http


class Handler(BaseHTTPRequestHandler):
    """Answers by path: a number, and a text."""

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        self.server.asked.append((self.path, self.rfile.read(length), dict(self.headers)))
        code, text = self.server.answers.get(self.path, (404, b"Not Found"))
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(name="server")
def _server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.answers = [], {}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, path, body=None, **more):
    """Ask it by POST."""
    http = Http("motor", f"http://127.0.0.1:{server.server_port}/", refused, {"Key": "k"})
    return asyncio.run(http.ask("POST", path, body, **more))


def refused(path, code, said):
    return CaptureError(f"motor: {path} {code} {said}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b'{"a": [1]}', {"a": [1]}), (b"Start profiling.\n", "Start profiling.\n"), (b"", None)],
    ids=["JSON", "text", "nothing"],
)
def test_what_is_answered_is_json_or_text_or_nothing(server, text, expected):
    """An answer that is no JSON is no error: servers say what they like."""
    server.answers["/start"] = 200, text

    assert ask(server, "/start") == expected


def test_what_is_asked_is_json_with_the_headers_given(server):
    """Nothing asked has no body."""
    server.answers["/start"] = 200, b""

    ask(server, "/start", {"a": 1})
    ask(server, "/start")

    (_, first, headers), (_, second, _) = server.asked
    assert (first, second) == (b'{"a": 1}', b"")
    assert (headers["Key"], headers["Content-Type"]) == ("k", "application/json")


def test_a_refusal_is_what_the_engine_makes_of_it(server):
    """By its path, its number, and the first of what was said."""
    server.answers["/start"] = 404, b"x" * 2000

    with pytest.raises(CaptureError) as raised:
        ask(server, "/start")

    assert str(raised.value) == f"motor: /start 404 {'x' * 500}"


def test_a_path_that_is_missing_may_stand_for_something(server):
    """Of an old server; another number is a refusal all the same."""
    server.answers["/broken"] = 500, b""

    assert ask(server, "/nowhere", missing={}) == {}
    with pytest.raises(CaptureError, match="/broken 500"):
        ask(server, "/broken", missing={})


def test_an_address_without_a_scheme_is_refused():
    """It is said how it is written."""
    with pytest.raises(
        CaptureError, match=r"^motor: 'box:80' is not an address; write http://box:80$"
    ):
        Http("motor", "box:80", refused)
