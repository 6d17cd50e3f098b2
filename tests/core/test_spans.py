"""Spans as lines of a file and back, placed on the wall clock of their host."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof.rundir import Journal, as_line, span_line, span_record
from rlprof.types import Clock
from rlprof_run import Span
from tests.core.test_reader import ACTOR, EPOCH, Folder, beginning, event

SECOND = 1_000_000_000
LATER = Clock(EPOCH + 10 * SECOND + 600, 100 + 10 * SECOND, 60)

PLAIN = ("phase", "rollout", 100, 100 + SECOND, 7, 4001, 3, None, 0, None)
FULL = ("span", "tool call", 200, 300, 7, 4001, 4, 3, 2, {"model": "m", "n": [1, None]})


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


def test_spans_are_read_as_they_were_written(tmp_path):
    """All fields come back, times as wall-clock times of the host."""
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
