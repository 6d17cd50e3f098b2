"""A part of a run, arrows from the driver, many processes at work, and how far they are."""

from __future__ import annotations

import os
import signal

import pytest

import rlprof
from rlprof import plugins
from rlprof_timeline import Timeline, _pool
from tests.perfetto_engine import query_all
from tests.timeline.builder import NOW, Written
from tests.timeline.layouts import LAYOUTS
from tests.timeline.ranks import ROLLOUT, two_ranks


@pytest.mark.parametrize("layout", ["kineto", "compact"])
def test_only_the_selected_time_is_shown(run, tmp_path, layout) -> None:
    """An event that reaches into the stretch is there, one that ends before or begins after not."""
    times = {"before": (0, 999), "into": (500, 1_000), "in": (1_500, 10), "after": (2_000, 5)}
    events = [
        {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur}
        for name, (start, dur) in times.items()
    ]
    process = run.process()
    process.trace(ROLLOUT, [LAYOUTS[layout](event) for event in events], NOW)
    process.span("span", "a span before", NOW - 10, NOW + 1)
    part = rlprof.read(run.path).only(rlprof.Selection(from_ns=NOW + 1_000, until_ns=NOW + 2_000))

    hooks = plugins.hooks(Timeline())
    (file,) = hooks.render(run=part, out=tmp_path, options={})

    assert sorted(event["name"] for event in Written(file).events) == ["in", "into"]


@pytest.mark.slow
def test_arrows_lead_from_the_drivers_phase_to_each_members(run, tmp_path) -> None:
    """Perfetto draws one for each member, to the phase of the same step, name and occurrence."""
    driver = run.process("driver", 0, 1)
    driver.span("phase", "rollout", NOW, NOW + 900, step=2)
    driver.span("phase", "rollout", NOW + 1000, NOW + 1900, step=2, occurrence=1)
    for rank in (0, 1):
        member = run.process(rank=rank, host=f"node-{rank}")
        member.span("phase", "rollout", NOW + 10, NOW + 800, step=2)
        member.span("phase", "update", NOW + 10, NOW + 800, step=3)
        member.span("phase", "rollout", NOW + 1010, NOW + 1800, step=2, occurrence=1)

    found = query_all(
        run.export(tmp_path / "out"),
        rows="""
        select p.name as whose, a.ts - (select min(ts) from slice) as left, b.ts - a.ts as later
        from flow join slice a on slice_out = a.id join slice b on slice_in = b.id
        join thread_track t on b.track_id = t.id join thread using (utid)
        join process p using (upid) order by whose, left
        """,
    )["rows"]

    assert [(row["whose"], row["left"], row["later"]) for row in found] == [
        ("actor 0/2 · node-0", 0, 10),
        ("actor 0/2 · node-0", 1000, 10),
        ("actor 1/2 · node-1", 0, 10),
        ("actor 1/2 · node-1", 1000, 10),
    ]


# failures.md: export-stopped
def test_two_processes_make_the_file_that_one_makes_or_an_error(run, tmp_path, monkeypatch) -> None:
    """It is the same to the byte; one that the system kills is said, and no draft is left."""
    two_ranks(run)
    alone = run.export(tmp_path / "alone").read_bytes()
    monkeypatch.setattr(_pool, "_SMALL", 0)
    monkeypatch.setattr(_pool, "_cores", lambda: 2)
    monkeypatch.setattr(_pool, "_can_be_copied", lambda: True)

    assert run.export(tmp_path / "together").read_bytes() == alone

    monkeypatch.setattr(_pool, "move", _die)

    with pytest.raises(MemoryError, match="was killed; export less: --step"):
        run.export(tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
