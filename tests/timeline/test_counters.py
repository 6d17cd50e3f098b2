"""Counters stand on the timeline as counter tracks, as Perfetto's own engine sees them."""

from __future__ import annotations

import attrs
import pytest

from rlprof.rundir import Journal, as_line
from rlprof.types import Target
from tests.perfetto_engine import query_all
from tests.timeline.builder import NOW, ProcessBuilder

ENGINE = Target("rollout", 0, 1, replica=1)
ASKED = {
    "counters": """
        select p.name as process, t.name as counter, ts, value
        from counter join process_counter_track t on track_id = t.id join process p using (upid)
        order by ts, process, counter
    """,
    "errors": "select name from stats where severity = 'error' and value > 0",
}


def count(process: ProcessBuilder, at: int, target: Target | None = None, **values: float) -> None:
    """Write what a process or its engine was at."""
    whose = {} if target is None else {"target": attrs.asdict(target)}
    journal = Journal(process.folder / "counters" / f"{process.name}.jsonl")
    journal.write([as_line({"mono": at - process.booted, "values": values, **whose})])
    journal.close()


@pytest.mark.slow
def test_perfetto_sees_the_counters_of_a_process_and_of_its_engine(run, tmp_path) -> None:
    """Each value is on a track of its process at its time; an engine has a process of its own."""
    process = run.process()
    process.span("step", "step 1", NOW, NOW + 9_000)
    count(process, NOW - 5_000, rss_bytes=1.5e9)
    count(process, NOW, ENGINE, requests_running=64.0, kv_cache_use=0.5)
    count(process, NOW + 5_000, rss_bytes=2.5e9)

    found = query_all(run.export(tmp_path / "out"), **ASKED)

    trainer, engine = "actor 0/2 · node-a", "rollout replica 1 · counters"
    begin = found["counters"][0]["ts"]
    assert [tuple(row.values()) for row in found["counters"]] == [
        (trainer, "rss_bytes value", begin, 1.5e9),
        (engine, "kv_cache_use value", begin + 5_000, 0.5),
        (engine, "requests_running value", begin + 5_000, 64.0),
        (trainer, "rss_bytes value", begin + 10_000, 2.5e9),
    ]
    assert found["errors"] == []
