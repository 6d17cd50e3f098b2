"""Spans of threads and tasks, as lines of a file and read back."""

import asyncio
import gc
import threading
from collections import Counter

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import Journal, as_line, span_line, span_record
from rlprof.session._scope import Scope
from rlprof.types import Clock
from rlprof_run import Span
from tests.core.steps import through
from tests.core.test_reader import ACTOR, EPOCH, Folder, beginning, event
from tests.waiting import wait_until

SECOND = 1_000_000_000
LATER = Clock(EPOCH + 10 * SECOND + 600, 100 + 10 * SECOND, 60)

PLAIN = ("phase", "rollout", 100, 100 + SECOND, 7, 4001, 3, None, 0, None)
FULL = ("span", "tool call", 200, 300, 7, 4001, 4, 3, 2, {"model": "m", "n": [1, None]})


class OneError:
    """An object of training that fails when it is read."""

    def __str__(self):
        raise RuntimeError

    keys = __bool__ = __str__


TEXT = st.text(st.characters(exclude_categories=()))
ODD = st.recursive(
    st.none() | st.integers() | st.floats() | st.binary() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
    max_leaves=6,
)  # fmt: skip
"""Any value that a program may note, half of a surrogate pair too."""


@pytest.mark.slow
@settings(deadline=None)
@given(
    name=TEXT,
    step=st.none() | st.integers(),
    parent=st.none() | st.integers(),
    occurrence=st.integers(0, 3),
    noted=st.none() | st.dictionaries(st.text() | st.tuples(st.integers()), ODD),
)
def test_both_writers_of_a_span_agree(name, step, parent, occurrence, noted):
    """The fast writer of a span writes the same bytes as the plain one, for any notes."""
    raw = ("span", name, 100, 200, step, 4001, 3, parent, occurrence, noted)

    assert span_line(raw) == as_line(span_record(raw))


def test_spans_are_read_as_they_were_written(tmp_path):
    """A span is read with all fields it was written with, and its times on the wall clock."""
    folder = Folder(tmp_path)
    folder.write(*beginning(), event("clock", **attrs.asdict(LATER)), name="actor-1")
    lines = [as_line(span_record(span)) for span in (PLAIN, FULL)]
    Journal(tmp_path / "spans/actor-1.jsonl").write(lines)

    found = list(folder.read().spans())

    expected = [
        Span("phase", "rollout", EPOCH, EPOCH + SECOND, 7, ACTOR, "actor-1", 4001, 3, None, 0, {}),
        Span(
            "span", "tool call", EPOCH + 100, EPOCH + 200, 7, ACTOR, "actor-1", 4001, 4, 3, 2,
            {"model": "m", "n": [1, None]},
        ),
    ]  # fmt: skip
    assert expected == found
    assert [span.seconds for span in found] == [1.0, 1e-7]


def by_name(prof):
    return {span.name: span for span in rlprof.read(prof.run_dir).spans()}


def test_steps_phases_and_spans_nest(config):
    """Spans nest in phases and steps, across threads, late ends and ends out of order."""
    with rlprof.open(config(steps="none")) as prof:
        prof.step(3)
        with prof.phase("rollout"), prof.span("request", {"trajectory": 17}) as request:
            request.note("tokens", 5)
            thread = threading.Thread(target=lambda: through(prof.span("other")))
            thread.start()
            thread.join()
        first, second = prof.phase("first"), prof.phase("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        through(prof.span("inside second"))
        second.__exit__(None, None, None)
        through(prof.span("after"))
        late = prof.span("late")
        late.__enter__()
        prof.step(4)
        late.__exit__(None, None, None)
        prof.phase("never ended").__enter__()

    found = by_name(prof)
    assert found["other"].parent == found["late"].parent == found["step 3"].id
    assert found["other"].thread != found["rollout"].thread
    assert found.pop("step 4").step == 4
    assert found["request"].parent == found["rollout"].id
    assert (found["rollout"].parent, found["step 3"].parent) == (found["step 3"].id, None)
    assert found["request"].attributes == {"trajectory": 17, "tokens": 5}
    assert {3} == {span.step for span in found.values()}
    assert found["inside second"].parent == found["second"].id
    assert found["after"].parent == found["step 3"].id
    with rlprof.open(config(steps="none")) as prof:
        prof.step(1)
        through(prof.span("anew"))
    assert by_name(prof)["anew"].parent == by_name(prof)["step 1"].id


@pytest.mark.slow
def test_spans_reach_the_disk_while_the_session_is_open(config):
    """A span reaches the disk while its session is open."""
    with rlprof.open(config(steps="none")) as prof:
        through(prof.span("work"))
        wait_until(lambda: "work" in by_name(prof))

        assert rlprof.read(prof.run_dir).is_running


def test_spans_beyond_memory_are_counted(config, monkeypatch):
    """Spans beyond the limit in memory are dropped and counted; steps and phases are kept."""
    from rlprof.session import _scribe

    monkeypatch.setattr(_scribe, "_MOST_SPANS", 10)
    with rlprof.open(config(steps="none")) as prof:
        prof.step(1)
        for _ in range(10_000):
            through(prof.span("many"))
        through(prof.phase("update"))

    dropped = prof.scribe.dropped
    text = next((prof.run_dir / "manifest").iterdir()).read_text()
    assert dropped > 0
    assert '"event":"dropped","mono":' in text
    assert f'"spans":{dropped}' in text
    kinds = Counter(one.kind for one in rlprof.read(prof.run_dir).spans())
    assert kinds == {"span": 10_000 - dropped, "step": 1, "phase": 1}


def test_a_scope_may_be_entered_again(config):
    """A scope may be entered while it is open, after its end, or below a scope that it holds."""
    with rlprof.open(config(tool="none")) as prof:
        prof.step(1)
        again, other = prof.span("again"), prof.span("other")
        with again, other, again, again:
            pass
        with other, again, prof.span("inside"):
            pass
        with prof.span("after"):
            pass

    spans = [one for one in rlprof.read(prof.run_dir).spans() if one.kind == "span"]
    names = {one.id: one.name for one in spans}
    assert [(one.name, names.get(one.parent)) for one in spans] == [
        ("other", "again"), ("again", None), ("inside", "again"), ("again", "other"),
        ("other", None), ("after", None),
    ]  # fmt: skip


def test_ended_spans_do_not_pile_up(config):
    """A chain of tasks, each started inside a span of the one before, keeps no ended span alive."""
    alive = []

    async def chain(prof, left):
        with prof.span("request"):
            following = asyncio.create_task(chain(prof, left - 1)) if left else None
            await asyncio.sleep(0)
        alive.append(sum(type(one) is Scope for one in gc.get_objects()))
        if following:
            await following

    with rlprof.open(config(tool="none")) as prof:
        asyncio.run(chain(prof, 50))

    assert max(alive) < 10


@pytest.mark.parametrize("given", [OneError(), {1: 2}, [1, 2]])
def test_odd_names_and_attributes_do_not_raise(given, config):
    """Names and attributes that fail when read, and keys that are no text, reach no step."""
    with rlprof.open(config(tool="none", strict=True)) as prof:
        with prof.phase(given), prof.span(given, given) as span, prof.trajectory(1, given) as path:
            span.note([1], 2)
            through(path.turn(1, given))
    assert len([*rlprof.read(prof.run_dir).spans()]) == 4


def test_steps_are_like_the_iterable_that_was_given(config):
    """`prof.steps` has the length of its iterable, and can be iterated again or by `next`."""
    with rlprof.open(config(tool="none")) as prof:
        steps, others = prof.steps(range(3)), prof.steps(iter([7, 8]))

        assert (len(steps), [*steps], [*steps]) == (3, [0, 1, 2], [0, 1, 2])
        assert (next(others), [*others]) == (7, [8])
