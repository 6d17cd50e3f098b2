"""The Perfetto harness reads traces exactly, and fails when it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.perfetto_engine import PerfettoError, Summary, query, query_all, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytestmark = pytest.mark.slow

# A host process which launches one kernel on a device. Times are in microseconds.
EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 70, "tid": 0, "args": {"name": "actor"}},
    {"ph": "M", "name": "thread_name", "pid": 70, "tid": 71, "args": {"name": "main"}},
    {"ph": "M", "name": "process_name", "pid": 80, "tid": 0, "args": {"name": "GPU 0"}},
    {"ph": "X", "name": "step", "pid": 70, "tid": 71, "ts": 10.0, "dur": 20.5},
    {"ph": "X", "name": "launch", "pid": 70, "tid": 71, "ts": 12.25, "dur": 2.0},
    {"ph": "X", "name": "kernel", "pid": 80, "tid": 7, "ts": 15.0, "dur": 3.001},
    {"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 70, "tid": 71, "ts": 12.25},
    {"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 80, "tid": 7, "ts": 15.0, "bp": "e"},
]
EXPECTED = Summary(
    slices=3,
    flows=1,
    processes=2,
    threads=2,
    errors={},
    process_names=["GPU 0", "actor"],
    slice_names=["kernel", "launch", "step"],
)


def to_json(events: Sequence[Mapping[str, object]], *, ensure_ascii: bool = False) -> bytes:
    """Encode `events` as a Chrome trace."""
    return json.dumps({"traceEvents": events}, ensure_ascii=ensure_ascii).encode()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Write the good trace."""
    path = tmp_path / "good.json"
    path.write_bytes(to_json(EVENTS))
    return path


def test_summary_reads_a_trace_exactly(trace: Path) -> None:
    """Slices, flows, processes and threads are counted and named as written."""
    assert summary(trace) == EXPECTED


def test_several_queries_share_one_engine(trace: Path) -> None:
    """Each named query gets its own rows, in order, and none when nothing matches."""
    found = query_all(
        trace,
        slices="select name, ts, dur from slice order by ts",
        flows="""
            select a.name as source, b.name as target from flow
            join slice a on a.id = slice_out join slice b on b.id = slice_in
        """,
        nothing="select name from slice where name = 'absent'",
    )
    assert found == {
        "slices": [
            {"name": "step", "ts": 10_000, "dur": 20_500},
            {"name": "launch", "ts": 12_250, "dur": 2_000},
            {"name": "kernel", "ts": 15_000, "dur": 3_001},
        ],
        "flows": [{"source": "launch", "target": "kernel"}],
        "nothing": [],
    }


def test_trace_larger_than_one_read_is_whole(tmp_path: Path) -> None:
    """A trace which is sent to the engine in several pieces loses nothing."""
    padding = "x" * 1000
    events = [
        {"ph": "X", "name": f"{i} {padding}", "pid": 1, "tid": 1, "ts": i, "dur": 1}
        for i in range(9_000)
    ]
    path = tmp_path / "large.json"
    path.write_bytes(to_json(events))
    assert path.stat().st_size > 8 << 20  # what engine.js reads at once
    sql = "select count(distinct name) as names, sum(dur) as dur from slice"
    assert query(path, sql) == [{"names": 9_000, "dur": 9_000_000}]
    assert summary(path).errors == {}


def test_truncated_json_is_refused(trace: Path) -> None:
    """A trace whose end is missing raises, though its first events are readable."""
    trace.write_bytes(trace.read_bytes()[:-40])
    with pytest.raises(PerfettoError, match=r"^JSON trace file is incomplete$"):
        summary(trace)


def test_dropped_slice_is_counted_as_an_error(tmp_path: Path) -> None:
    """Slices which overlap on one thread load, and the one Perfetto drops is in the errors."""
    thread = {"ph": "X", "pid": 1, "tid": 1, "dur": 10}
    path = tmp_path / "overlap.json"
    path.write_bytes(to_json([{"name": "a", "ts": 0, **thread}, {"name": "b", "ts": 5, **thread}]))
    seen = summary(path)
    assert seen.errors == {"slice_drop_overlapping_complete_event": 1}
    assert seen.slice_names == ["a"]
