"""A server of SGLang's: what it is asked, and what becomes of its refusals, which say nothing."""

import pytest

from rlprof import CaptureError
from rlprof_sglang._server import RefusedError, Server, UnsaidError, _is_here
from tests.cases import cases
from tests.engine_parts.lab import notes, serving, states

pytestmark = pytest.mark.usefixtures("modules")


@pytest.fixture(name="server")
def _server(request, monkeypatch):
    """Return a server; parametrize it indirectly for a key. `.codes`: what a path is refused by."""
    key = getattr(request, "param", "")
    monkeypatch.setenv("A_KEY", "hunter2")

    def answers(path, headers):
        if path == "/server_info":
            return 200, {"tp_size": 1, "device": "cpu", "internal_states": [{}]}
        if key and headers.get("Authorization") != f"Bearer {key}":
            return 401, "Unauthorized"
        return server.codes.get(path, 200), "not so"

    with serving(answers) as server:
        server.codes = {}
        yield server


# failures.md: sglang-key
@pytest.mark.slow
@pytest.mark.parametrize("server", ["hunter2"], indirect=True)
@pytest.mark.parametrize(
    ("given", "why"),
    [("hunter2", ""), ("$A_KEY", ""), ("hunter3", "asks for a key other than"),
     (None, "asks for the server's key; set admin_api_key"),
     ("$NOBODY_HAS_SET_IT", "$NOBODY_HAS_SET_IT is not in this environment")],
)  # fmt: skip
def test_a_server_with_a_key_is_given_it(lab, server, given, why, caplog):
    """Without, or with another, the window is refused, and says what to name; not the key."""
    run = lab.train(server.address, steps=(1,), admin_api_key=given)

    said = notes(run, 0) + " ".join(run.problems)
    assert why in said
    assert (states(run) == ["failed"]) is bool(why)
    posted = ["/start_profile", "/stop_profile"][: 1 if why else 2]
    assert [path for path, _ in server.posted] == ([] if "NOBODY" in why else posted)
    assert "hunter" not in said + caplog.text
    assert why or "another process" in run.captures[0].unsupported["requests"]


# failures.md: sglang-key
@cases("host, is_here", ("localhost", True), ("192.0.2.7", False), ("nowhere.invalid", False))
def test_a_host_is_known_to_be_this_one(host, is_here):
    """By its name, or because its address can be bound here."""
    assert _is_here(f"http://{host}:30000") is is_here


# failures.md: sglang-refused
@pytest.mark.parametrize(
    ("key", "code", "error", "why"),
    [("", 401, RefusedError, "asks for the server's key"), ("k", 403, RefusedError, "a key other"),
     ("", 404, RefusedError, "is not there"), ("", 422, RefusedError, "answered 422: no"),
     ("", 500, UnsaidError, "refused; the server's log"), ("", 502, CaptureError, "answered 502")],
)  # fmt: skip
def test_a_refusal_says_what_the_server_did(key, code, error, why):
    """Its frontend, a scheduler of it, or a proxy before it."""
    refusal = Server("http://a:1", key)._refusal("/start_profile", code, "no")

    assert type(refusal) is error
    assert why in str(refusal)
    assert "http://a:1/start_profile" in str(refusal)
