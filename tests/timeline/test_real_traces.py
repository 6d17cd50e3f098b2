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
BOOKKEEPING = {
    "PyTorch Profiler (0)", "Iteration Start: PyTorch Profiler", "Record Window End"
}  # fmt: skip
WITHOUT_ESCAPES = str.maketrans('\\"\n\t', "/'  ")
ASKED = {
    "slices": f"select count(*) as n from slice where name not in {(*sorted(BOOKKEEPING),)}",
    "dropped": """
        select name, sum(value) as n from stats
        where severity = 'error' and value > 0 group by name
    """,
    "threads": f"""
        select count(*) as slices, sum(dur) as dur
        from slice join thread_track on slice.track_id = thread_track.id
        where slice.name not in {(*sorted(BOOKKEEPING),)} group by utid
    """,
    "arrows": """
        select a.name as source, b.name as target, count(*) as n from flow
        join slice a on a.id = slice_out join slice b on b.id = slice_in group by 1, 2
    """,
    "names": """
        select distinct p.name || ': ' || t.name as name
        from thread_track join thread t using (utid) join process p using (upid)
        where p.name is null or t.name is null or p.name like '%2ranks%' order by p.name, t.tid
    """,
}


@pytest.fixture(name="timeline", scope="module")
def _timeline(tmp_path_factory) -> Path:
    """Export all of them into one file."""
    return write(of_files(FILES), tmp_path_factory.mktemp("out"))


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
        trace = json.loads(gzip.decompress(file.read_bytes()), parse_float=Fraction)
        base = trace.get("baseTimeNanoseconds", 0)
        ids.append({})
        for old in trace["traceEvents"]:
            if old["ph"] == "M" or old["name"] in BOOKKEEPING:
                continue
            new = next(found)
            assert written.epoch_ns(new) == base + round(Fraction(old["ts"]) * 1000)
            if old["ph"] == "X":
                assert new["dur"] * 1000 == round(Fraction(old.get("dur", 0)) * 1000)
            moved = ("ts", "dur", "pid", "tid", "id", "s")
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
    """Slices, arrows, what it drops, and the threads; those of a rank are in one process."""
    alone = [query_all(file, **ASKED) for file in FILES]

    together = query_all(timeline, **ASKED)

    assert together["slices"] == [{"n": sum(one["slices"][0]["n"] for one in alone)}]
    assert together["dropped"] == [row for one in alone for row in one["dropped"]]
    for table in ("threads", "arrows"):
        expected = Counter(tuple(row.values()) for one in alone for row in one[table])
        assert Counter(tuple(row.values()) for row in together[table]) == expected
    assert sum(row["n"] for row in together["arrows"]) == 137
    assert [row["name"] for row in together["names"]] == [
        f"rank {rank}/128 · gpu_2ranks_rank{rank}: {thread}"
        for rank, threads in ((0, (4037, 23695)), (1, (4045, 23704)))
        for thread in (
            *(f"GPU {rank} stream {stream}" for stream in (7, 23, 25, 84, 203)),
            *(f"thread {tid} (python3.8)" for tid in threads),
        )
    ]
