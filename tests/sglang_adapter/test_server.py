"""A server of SGLang: the requests it gets, and the errors made of its bare refusals."""

import io
from urllib.error import HTTPError

import pytest

from rlprof import CaptureError
from rlprof_sglang import Sglang, SglangOptions
from rlprof_sglang._server import RefusedError, Server, UnsaidError, _is_here
from tests.cases import cases
from tests.engine_parts.lab import Driven

pytestmark = pytest.mark.usefixtures("modules")


# failures.md: sglang-key
@cases(
    "given, why",
    ("hunter2", ""),
    ("$A_KEY", ""),
    ("hunter3", "asks for a key other than"),
    (None, "asks for the server's key; set admin_api_key"),
    ("$NOBODY_HAS_SET_IT", "$NOBODY_HAS_SET_IT is not in this environment"),
)
def test_the_key_of_a_server_is_sent(monkeypatch, tmp_path, given, why):
    """The server gets its key; without the right one the window fails, and no error shows it."""
    posted = []

    def urlopen(request, timeout):
        if request.selector == "/server_info":
            return io.BytesIO(b'{"tp_size": 1, "device": "cpu", "internal_states": [{}]}')
        posted.append(request.selector)
        if request.headers.get("Authorization") != "Bearer hunter2":
            raise HTTPError(request.full_url, 401, "", None, io.BytesIO())
        return io.BytesIO()

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.setenv("A_KEY", "hunter2")
    asked = {"admin_api_key": given, "profiler_dir": str(tmp_path / "traces")}
    one = Driven(monkeypatch, tmp_path, Sglang, "http://127.0.0.1:1", **asked)

    said = one.errors("configure") or one.errors("start", "stop")

    assert [why in text for text in said] == [True] * bool(why)
    assert "hunter" not in "".join([*said, repr(SglangOptions(admin_api_key=given))])
    expected = ["/start_profile", "/stop_profile"][: 1 if why else 2]
    assert posted == ([] if "NOBODY" in why else expected)


# failures.md: sglang-key
@cases("host, is_here", ("localhost", True), ("192.0.2.7", False), ("nowhere.invalid", False))
def test_a_host_is_known_to_be_this_one(host, is_here):
    """A host is this one if it is localhost or its address can be bound here."""
    assert _is_here(f"http://{host}:30000") is is_here


# failures.md: sglang-refused
@pytest.mark.parametrize(
    ("key", "code", "error", "why"),
    [("", 401, RefusedError, "asks for the server's key"), ("k", 403, RefusedError, "a key other"),
     ("", 404, RefusedError, "is not there"), ("", 422, RefusedError, "answered 422: no"),
     ("", 500, UnsaidError, "refused; the server's log"), ("", 502, CaptureError, "answered 502")],
)  # fmt: skip
def test_a_refusal_names_its_cause(key, code, error, why):
    """Each HTTP error of a server has the error type and the message that fit its code."""
    refusal = Server("http://a:1", key)._refusal("/start_profile", code, "no")

    assert type(refusal) is error
    assert why in str(refusal)
    assert "http://a:1/start_profile" in str(refusal)
