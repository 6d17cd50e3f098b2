"""Spans as lines of a file and back, placed on the wall clock of their host."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import Here, Journal, as_line, join, span_line, span_record
from rlprof.types import Clock, Target
from rlprof_run import Span, clock_at
from rlprof_run._spans import span_from_record

EPOCH = 1_790_857_026_000_000_000
SECOND = 1_000_000_000
ACTOR = Target("actor", 1, 2)
CLOCKS = (Clock(EPOCH, 100, 40), Clock(EPOCH + 10 * SECOND + 600, 100 + 10 * SECOND, 60))

PLAIN = ("phase", "rollout", 100, 100 + SECOND, 7, 4001, 3, None, 0, None)
FULL = ("span", "tool call", 200, 300, 7, 4001, 4, 3, 2, {"model": "m", "n": [1, None]})


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """Make a run of one process, whose spans are written by the tests."""
    folder = join(tmp_path, Target("actor"), {}, env={"RLPROF_RUN_ID": "a-run"}).path
    here = Here("node-a", "boot", "pid:[1]", 4000, "1")
    lines = [
        {"event": "process", "target": attrs.asdict(ACTOR), "here": attrs.asdict(here)},
        *({"event": "clock", **attrs.asdict(clock)} for clock in CLOCKS),
    ]
    Journal(folder / "manifest" / "actor-1.jsonl").write(map(as_line, lines))
    return folder


def write(folder, *lines):
    Journal(folder / "spans" / "actor-1.jsonl").write(lines)


def test_what_says_nothing_is_left_out_of_the_line():
    """A line names what there is: no parent, occurrence and attributes where there are none."""
    always = {"kind": "phase", "name": "rollout", "t0": 100, "t1": 100 + SECOND, "step": 7,
              "thread": 4001, "id": 3}  # fmt: skip
    more = {"parent": 3, "occurrence": 2, "attributes": {"model": "m", "n": [1, None]}}

    plain, full = span_record(PLAIN), span_record(FULL)

    assert always == plain
    assert always.keys() | more.keys() == full.keys()
    assert more == {key: full[key] for key in more}


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
    max_leaves=6,
)  # fmt: skip
"""Whatever a program may note, half of a surrogate pair too."""


@pytest.mark.slow
@settings(deadline=None)
@given(
    name=st.text(st.characters(exclude_categories=())),
    step=st.none() | st.integers(),
    parent=st.none() | st.integers(),
    occurrence=st.integers(0, 3),
    noted=st.none() | st.dictionaries(st.text() | st.tuples(st.integers()), ODD),
)
def test_a_line_is_written_in_one_way(name, step, parent, occurrence, noted):
    """The fast way writes what the plain one does, to the byte, whatever was noted."""
    raw = ("span", name, 100, 200, step, 4001, 3, parent, occurrence, noted)

    assert span_line(raw) == as_line(span_record(raw))


def test_spans_are_read_as_they_were_written(folder):
    """All fields come back, times as wall-clock times of the host."""
    write(folder, as_line(span_record(PLAIN)), as_line(span_record(FULL)))

    found = list(rlprof.read(folder).spans())

    expected = [
        Span("phase", "rollout", EPOCH, EPOCH + SECOND, 7, ACTOR, "actor-1", 4001, 3, None, 0, {}),
        Span(
            "span", "tool call", EPOCH + 100, EPOCH + 200, 7, ACTOR, "actor-1", 4001, 4, 3, 2,
            {"model": "m", "n": [1, None]},
        ),
    ]  # fmt: skip
    assert expected == found
    assert [span.seconds for span in found] == [1.0, 1e-7]


def test_a_run_without_spans_has_none(folder):
    """A process that wrote no spans has no file of them."""
    assert list(rlprof.read(folder).spans()) == []


GOOD = span_record(PLAIN)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"\0\0\0\n",
        as_line(GOOD)[:40] + b"\n",
        as_line(GOOD)[:40] + as_line(GOOD),
        b'{"kind":"phase","name":"x","t0":Infinity,"t1":1,"id":1}\n',
        b'{"kind":"phase","name":"x","t0":NaN,"t1":1,"id":1}\n',
        as_line({}),
        as_line(GOOD | {"t0": None}),
        as_line(GOOD | {"t1": "later"}),
        as_line(GOOD | {"step": "seventh"}),
        as_line(GOOD | {"parent": [1]}),
        as_line(GOOD | {"attributes": 5}),
        as_line({key: GOOD[key] for key in GOOD if key != "id"}),
        b"[1,2,3]\n",
    ],
)
def test_a_line_that_is_no_span_is_skipped(folder, line):
    """The spans before and after whatever a crash has left are all there."""
    write(folder, as_line(span_record(PLAIN)), line, as_line(span_record(FULL)))

    found = [span.name for span in rlprof.read(folder).spans()]

    assert found == ["rollout", "tool call"]


@given(st.integers(0, 20 * SECOND), st.integers(0, 20 * SECOND), st.integers(-400, 400))
@settings(max_examples=100, deadline=None)
def test_spans_lie_where_the_wall_clock_was(start, length, ppm):
    """A span begins within its clocks' bound of the true time and is as long as was measured."""

    def truth(at):
        return EPOCH + at + at * ppm // 1_000_000

    clocks = [Clock(truth(at), at, 100) for at in (0, 8 * SECOND, 16 * SECOND)]
    raw = ("span", "work", start, start + length, None, 1, 1, None, 0, None)

    span = span_from_record(span_record(raw), target=ACTOR, process="actor-1", clocks=clocks)

    assert clock_at(clocks, start)[1] >= abs(truth(start) - span.start_ns)
    assert length == span.end_ns - span.start_ns


def test_a_span_never_ends_before_it_began():
    """A line whose end lies before its start is a span of no length."""
    record = span_record(PLAIN) | {"t1": 50}

    span = span_from_record(record, target=ACTOR, process="actor-1", clocks=CLOCKS)

    assert (span.start_ns, span.end_ns) == (EPOCH, EPOCH)
