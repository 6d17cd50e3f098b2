"""A server of SGLang's: what it is asked, and what becomes of its refusals, which say nothing."""

from __future__ import annotations

import pytest

from rlprof_sglang._server import _is_here
from tests.engine_parts.lab import notes, states
from tests.fakes.sglang_server import serving
from tests.sglang_adapter.generations import SAID, manager
from tests.sglang_adapter.lab import NEW, OLD, steps_in

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("modules")]

FOUR = ["step[EXTEND bs=1]", *["step[DECODE bs=1]"] * 3]


@pytest.fixture(name="server")
def _server(release, request):
    """Return a server of that release; parametrize it indirectly for a key."""
    with serving(manager(release), release, SAID[release]["HTTP"],
                 admin_key=getattr(request, "param", "")) as server:  # fmt: skip
        yield server


def train(lab, server, **options):
    """Train with it, a request in each window."""
    options = {"steps": (1, 2)} | options
    lab.answers.clear()
    handle = server.address
    return lab.train(handle, inside=lambda _: server.generate("jest"), **options)


# failures.md: sglang-traces
@pytest.mark.parametrize("release", [OLD, NEW])
def test_a_server_of_every_generation(lab, server, release):
    """It is asked the same of each: a word it does not know it passes over."""
    run = train(lab, server)

    assert states(run) == ["whole", "whole"]
    assert [steps_in(run, index)[0][:4] for index in range(2)] == [FOUR] * 2
    assert [path for path, _ in server.posted] == ["/start_profile", "/stop_profile"] * 2
    sent = [{**body, "output_dir": ""} for path, body in server.posted if body]
    plain = {"output_dir": "", "activities": ["CPU"], "with_stack": False,
             "record_shapes": False}  # fmt: skip
    ids = [{"profile_id": f"gs{step}-r0"} for step in (1, 2)]
    assert sent == [plain | one for one in ids]
    assert run.captures[0].unsupported["requests"] == (
        "this engine's frontend is in another process"
    )


# failures.md: sglang-key
@pytest.mark.parametrize("server", ["hunter2"], indirect=True)
@pytest.mark.parametrize("given", ["hunter2", "$A_KEY", "hunter3", None])
def test_a_server_with_a_key_is_given_it(lab, server, given, caplog, monkeypatch):
    """Without, or with another, the window is refused, and says what to name; not the key."""
    monkeypatch.setenv("A_KEY", "hunter2")

    run = train(lab, server, steps=(1,), admin_api_key=given)

    if given in ("hunter2", "$A_KEY"):
        assert states(run) == ["whole"]
    else:
        assert states(run) == ["failed"]
        how = "the server's key; set admin_api_key" if given is None else "a key other than"
        assert f"asks for {how}" in notes(run, 0)
        assert [path for path, _ in server.posted] == ["/start_profile"]
    assert "hunter" not in notes(run, 0) + caplog.text


# failures.md: sglang-key
def test_a_key_that_the_environment_has_not_is_named(lab, server):
    """Where it should have come from; the server is not asked."""
    run = train(lab, server, steps=(1,), admin_api_key="$NOBODY_HAS_SET_IT")

    assert "admin_api_key: $NOBODY_HAS_SET_IT is not in this environment" in " ".join(run.problems)
    assert server.posted == []


REFUSALS = {
    404: "is not there; is it an SGLang server?",
    500: "refused; the server's log says why",
}


# failures.md: sglang-refused
@pytest.mark.parametrize("code", REFUSALS)
def test_a_server_that_refuses_spoils_its_own_window(lab, server, code):
    """After a 500 a session may have begun in some schedulers, and is stopped."""
    server.codes["/start_profile"] = code

    def before(step):
        if step == 2:
            server.codes.clear()

    run = train(lab, server, before=before)

    assert states(run) == ["failed", "whole"]
    assert REFUSALS[code] in notes(run, 0)
    stops = [path for path, _ in server.posted].count("/stop_profile")
    assert stops == (2 if code == 500 else 1)
    assert server.manager.replica.killed_by == ""


# failures.md: sglang-key
def test_a_server_on_another_host_needs_a_folder_both_can_see(lab, server, monkeypatch):
    """What it would write there cannot be tried from here, nor fetched: nothing is asked."""
    monkeypatch.setattr("rlprof_sglang._server._is_here", lambda _: False)

    nowhere = train(lab, server, steps=(1,), profiler_dir=None)
    asked = len(server.posted)
    shared = train(lab, server, steps=(1,))

    assert states(nowhere) == ["failed"]
    assert "name a folder that both can see: profiler_dir" in notes(nowhere, 0)
    assert asked == 0
    assert states(shared) == ["whole"]


# failures.md: sglang-key
@pytest.mark.parametrize(
    ("host", "is_here"),
    [("localhost", True), ("192.0.2.7", False), ("nowhere.invalid", False)],
)
def test_a_host_is_known_to_be_this_one(host, is_here):
    """By its name, or because its address can be bound here."""
    assert _is_here(f"http://{host}:30000") is is_here
