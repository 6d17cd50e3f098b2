"""The real HTTP server, and an Engine whose loop rests."""

import pytest

from tests.real_engines import KNOWN, counters_of
from tests.sglang_real.conftest import captures, requests, steps, traces

pytestmark = pytest.mark.slow
TOOL = {"worker": "torch", "native": "sglang"}


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    return drive("server")


@pytest.fixture(scope="module", name="resting")
def _resting(drive):
    return drive("resting")


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("way", TOOL)
def test_a_servers_schedulers_are_recorded(driven, way, step):
    """Each window of a server has exactly the steps asked for, by both ways."""
    run = driven.run(way)

    (file,) = traces(run, TOOL[way], f"{step}/rollout")

    assert len(steps(file)) == 3
    assert [one["tokens"] for one in driven.of(way) if "tokens" in one] == [9, 9]
    assert [one["flags"] for one in driven.told if "flags" in one] == [["--enable-metrics"]]


def test_a_server_reports_its_requests_and_its_load(driven):
    """A window inside the schedulers has its request, one of SGLang's profiler has none."""
    run = driven.run("worker")

    for step in (1, 2):
        (capture,) = captures(run, "sglang", f"{step}/rollout")
        found, slices = requests(run, f"{step}/rollout")
        assert [one["args"]["tokens"] for one in found.values()] == [9]
        assert {"queued", "prefill", "decode"} <= {one["name"] for one in slices}
        assert "requests" not in capture.unsupported
    (native,) = captures(driven.run("native"), "sglang", "1/rollout")
    assert "requests" in native.unsupported
    counters = {frozenset(values) for values in counters_of(run)}
    assert counters == {frozenset(KNOWN - {"requests_in_flight"})}


# failures.md: engine-gone
def test_a_server_that_dies_in_a_window_ends_no_step(driven):
    """Both steps finish although the server dies, and the captures fail with the reason."""
    run = driven.run("dies")

    found = {one.window.start_step: one for one in run.captures}

    assert (driven.home / "killed").exists()
    assert [one["done"] for one in driven.of("dies") if "done" in one] == [1, 2]
    assert found[1].state in ("failed", "partial")
    assert found[2].state == "failed"
    assert any("does not answer" in note for note in found[2].notes)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("way", TOOL)
def test_an_engine_with_plain_calls_is_recorded(resting, way, step):
    """An Engine whose loop runs only during calls has exactly the steps asked for."""
    run = resting.run(way)

    (file,) = traces(run, TOOL[way], f"{step}/rollout")
    (capture,) = captures(run, "sglang", f"{step}/rollout")

    assert len(steps(file)) == 2
    assert capture.state == "whole"
    assert [one["tokens"] for one in resting.of(way) if "tokens" in one] == [9, 9]


# failures.md: engine-gone
def test_an_engine_that_is_shut_down_in_its_window_is_not_waited_for(resting):
    """A shutdown in a window spoils it with the reason, and the driver continues."""
    (capture,) = captures(resting.run("shut down"), "sglang", "1/rollout")

    assert capture.state in ("failed", "partial", "lost")
    assert "the engine was shut down" in " ".join(capture.notes)
