"""Spans: what is written down between windows, by threads and asyncio tasks alike."""

import threading

import pytest

import rlprof
from tests.waiting import wait_until


def by_name(prof):
    return {span.name: span for span in rlprof.read(prof.run_dir).spans()}


def test_steps_phases_and_spans_nest(config):
    """Span in phase, phase in step; those of a thread in the step, late ones where they began."""
    with rlprof.open(config(steps="none")) as prof:
        prof.step(3)
        with prof.phase("rollout"), prof.span("request", {"trajectory": 17}) as request:
            request.note("tokens", 5)
            thread = threading.Thread(target=lambda: prof.span("other").__enter__().__exit__(
                None, None, None))  # fmt: skip
            thread.start()
            thread.join()
        late = prof.span("late")
        late.__enter__()
        prof.step(4)
        late.__exit__(None, None, None)

    found = by_name(prof)
    assert found["other"].parent == found["late"].parent == found["step 3"].id
    assert found["other"].thread != found["rollout"].thread
    assert found.pop("step 4").step == 4
    assert found["request"].parent == found["rollout"].id
    assert found["rollout"].parent == found["step 3"].id
    assert found["step 3"].parent is None
    assert found["request"].attributes == {"trajectory": 17, "tokens": 5}
    assert {3} == {span.step for span in found.values()}


@pytest.mark.slow
def test_spans_reach_the_disk_within_a_second_or_so(config):
    """A killed process loses what it did in its last moments, not more."""
    with rlprof.open(config(steps="none")) as prof:
        with prof.span("work"):
            pass
        wait_until(lambda: "work" in by_name(prof))

        assert rlprof.read(prof.run_dir).is_running


def test_spans_beyond_memory_are_counted(config, monkeypatch):
    """What the run folder does not take in time is dropped and counted, not kept for ever."""
    from rlprof.session import _scribe

    monkeypatch.setattr(_scribe, "_MOST_SPANS", 10)
    with rlprof.open(config(steps="none")) as prof:
        for _ in range(10_000):
            with prof.span("many"):
                pass

    dropped = prof.scribe.dropped
    text = next((prof.run_dir / "manifest").iterdir()).read_text()
    assert dropped > 0
    assert '"event":"dropped","mono":' in text
    assert f'"spans":{dropped}' in text
    assert len(list(rlprof.read(prof.run_dir).spans())) == 10_000 - dropped


def test_spans_that_end_out_of_turn_leave_no_parent_behind(config):
    """What comes after has the parent that is still open, in this session and in the next."""
    with rlprof.open(config(steps="none")) as prof:
        prof.step(1)
        first, second = prof.phase("first"), prof.phase("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with prof.span("inside second"):
            pass
        second.__exit__(None, None, None)
        with prof.span("after"):
            pass
        prof.phase("never ended").__enter__()

    found = by_name(prof)
    assert found["inside second"].parent == found["second"].id
    assert found["after"].parent == found["step 1"].id
    with rlprof.open(config(steps="none")) as prof:
        prof.step(1)
        with prof.span("anew"):
            pass
    assert by_name(prof)["anew"].parent == by_name(prof)["step 1"].id
