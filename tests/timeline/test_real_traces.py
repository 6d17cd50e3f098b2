"""Traces of real GPUs, as files that rlprof did not make: nothing of them is lost or moved."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rlprof_timeline._loose import of_files
from rlprof_timeline._write import write
from tests.perfetto_engine import query_all
from tests.timeline.builder import Written

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("gpu_*.json.gz"))
WITHOUT_ESCAPES = str.maketrans('\\"\n\t', "/'  ")
ASKED = {
    "slices": "select count(*) as n from slice",
    "dropped": """
        select name, sum(value) as n from stats
        where severity = 'error' and value > 0 group by name
    """,
    "processes": """
        select count(*) as slices, sum(dur) as dur, count(distinct utid) as threads
        from slice join thread_track on slice.track_id = thread_track.id
        join thread using (utid) join process using (upid) group by upid
    """,
    "arrows": """
        select a.name as source, b.name as target, count(*) as n from flow
        join slice a on a.id = slice_out join slice b on b.id = slice_in group by 1, 2
    """,
    "names": "select name from process where name like '%2ranks%' order by name",
}


@pytest.fixture(name="timeline", scope="module")
def _timeline(tmp_path_factory) -> Path:
    """Export all of them into one file."""
    return write(of_files(FILES), tmp_path_factory.mktemp("out"))


def original(file: Path) -> tuple[int, list[dict[str, Any]]]:
    """Return the epoch of a file's times, and its events, with exact numbers."""
    trace = json.loads(gzip.decompress(file.read_bytes()), parse_float=Fraction)
    events = [event for event in trace["traceEvents"] if event["ph"] != "M"]
    return trace.get("baseTimeNanoseconds", 0), events


def plain(value: Any) -> Any:
    """Replace what a timeline replaces in text."""
    if isinstance(value, str):
        return value.translate(WITHOUT_ESCAPES)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value


def test_every_event_is_where_and_what_it_was(timeline) -> None:
    """Each of each file, to the nanosecond, by an arithmetic that knows nothing of ours."""
    written = Written(timeline)
    order = [source["file"] for source in written.about["sources"]]
    found = iter(written.events)
    ids: list[dict[Any, int]] = []

    for file in sorted(FILES, key=lambda file: order.index(file.name)):
        base, events = original(file)
        ids.append({})
        for old in events:
            new = next(found)
            assert written.epoch_ns(new) == base + round(Fraction(old["ts"]) * 1000)
            if old["ph"] == "X":
                assert new["dur"] * 1000 == round(Fraction(old.get("dur", 0)) * 1000)
            moved = ("ts", "dur", "pid", "tid", "id")
            assert {key: value for key, value in new.items() if key not in moved} == {
                key: plain(value) for key, value in old.items() if key not in moved
            }
            if "id" in old:
                assert ids[-1].setdefault(old["id"], new["id"]) == new["id"]

    assert next(found, None) is None
    assert len(order) == 4
    assert all(len({*one.values()}) == len(one) for one in ids)
    assert len({number for one in ids for number in one.values()}) == sum(map(len, ids))


def test_perfetto_sees_what_it_sees_in_each_alone(timeline) -> None:
    """Slices, arrows, what it drops, and the processes with their threads; ranks are named."""
    alone = [query_all(file, **ASKED) for file in FILES]

    together = query_all(timeline, **ASKED)

    assert together["slices"] == [{"n": sum(one["slices"][0]["n"] for one in alone)}]
    assert together["dropped"] == [row for one in alone for row in one["dropped"]]
    for table in ("processes", "arrows"):
        expected = Counter(tuple(row.values()) for one in alone for row in one[table])
        assert Counter(tuple(row.values()) for row in together[table]) == expected
    assert sum(row["n"] for row in together["arrows"]) == 137
    assert [row["name"] for row in together["names"]] == [
        "rank 0/128 · gpu_2ranks_rank0 · Spans",
        "rank 0/128 · gpu_2ranks_rank0 · pyper:trainer:0:0 CPU",
        "rank 0/128 · gpu_2ranks_rank0 · pyper:trainer:0:0 GPU 0",
        "rank 1/128 · gpu_2ranks_rank1 · Spans",
        "rank 1/128 · gpu_2ranks_rank1 · pyper:trainer:0:1 CPU",
        "rank 1/128 · gpu_2ranks_rank1 · pyper:trainer:0:1 GPU 1",
    ]
