"""vLLM's real HTTP server, reached by its address alone."""

import pytest

from tests.real_engines import KNOWN, counters_of
from tests.vllm_real.conftest import engine_steps, trace, traces_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    return drive("server")


@pytest.mark.parametrize(("way", "tool"), [("native", "vllm"), ("worker", "torch")])
def test_each_window_is_of_its_own_step(driven, way, tool):
    """Each window of a server has the engine steps of its own request, by both ways."""
    run = driven.run(way)
    asked = {one["step"]: one["tokens"] for one in driven.of(way) if "step" in one}

    for step, tokens in asked.items():
        found = [artifact for _, artifact in traces_of(run, tool, f"{step}/rollout")]
        assert len(found) == 1
        assert len(engine_steps(trace(run, found[0]))) in (tokens, tokens + 1)


def test_a_server_reports_its_requests_and_its_load(driven):
    """A window inside the worker has its request, one of vLLM's profiler has none."""
    inside, native = (
        [one for one in driven.run(way).captures if one.tool == "vllm"]
        for way in ("worker", "native")
    )

    for capture, tokens in zip(inside, [5, 8], strict=True):
        found = [art for art in capture.artifacts if art.path.endswith("_requests.trace.json.gz")]
        events = trace(driven.run("worker"), found[0])["traceEvents"]
        (request,) = [one for one in events if one["name"].startswith("request cmpl-")]
        assert request["args"]["tokens"] == tokens
        assert {"queued", "prefill", "decode"} <= {one["name"] for one in events}
        assert "requests" not in capture.unsupported
    assert all("requests" in one.unsupported for one in native)
    counters = {frozenset(values) for values in counters_of(driven.run("worker"))}
    assert counters == {frozenset(KNOWN - {"requests_in_flight"})}


# failures.md: engine-gone
def test_a_server_that_dies_in_a_window_ends_no_step(driven):
    """Both steps finish although the server dies, and the captures note that it does not answer."""
    run = driven.run("dies")

    assert driven.of("dies")[0]["done"] == [1, 2]
    assert [capture.state for capture in run.captures] == ["partial", "failed"]
    assert all(any("does not answer" in note for note in one.notes) for one in run.captures)
