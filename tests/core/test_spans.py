"""Spans as lines of a file and back, placed on the wall clock of their host."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import Here, Journal, as_line, join, span_line, span_record
from rlprof.types import Clock, Target
from rlprof_run import Span

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


TEXT = st.text(st.characters(exclude_categories=()))
ODD = st.recursive(
    st.none() | st.integers() | st.floats() | st.binary() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
    max_leaves=6,
)  # fmt: skip
"""Whatever a program may note, half of a surrogate pair too."""


@pytest.mark.slow
@settings(deadline=None)
@given(
    name=TEXT,
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
