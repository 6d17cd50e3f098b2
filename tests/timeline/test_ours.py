"""The timeline shows rlprof's own work, counters and trajectories."""

import os
import signal

import attrs
import pytest

import rlprof
from rlprof import plugins
from rlprof.rundir import Journal, as_line
from rlprof.types import Target
from rlprof_timeline import Timeline, _pool
from tests.cases import refused
from tests.perfetto_engine import query_all
from tests.timeline.builder import NOW, ROLLOUT, UPDATE, ProcessBuilder, Written, two_ranks
from tests.timeline.layouts import LAYOUTS

MS = 1_000_000


def recorded(run):
    """Write a window of rank 0 that began and ended late, with a slow start, stop and export."""
    process = run.process()
    key = process.open(UPDATE, NOW + 100 * MS)
    process.tell("started", NOW + 140 * MS, **key, seconds=0.03)
    process.tell("closed", NOW + 800 * MS, **key, reason="end", seconds=0.25)
    process.tell("exported", NOW + 2000 * MS, **key, seconds=1.0)
    said = {**key, "target": attrs.asdict(Target("actor", 0, 2))}
    process.tell("late", **said, hook="start", seconds=0.5)
    process.tell("late", **said, hook="stop", seconds=0.05)
    return process


def stretch(written, name: str) -> tuple[int, int]:
    """Return the milliseconds at which the one slice *name* begins and ends."""
    event = written.named(name)
    begin = (written.epoch_ns(event) - NOW) / MS
    return int(begin), int(begin + event["dur"] / 1000)


def test_starts_stops_and_exports_are_slices_of_their_process(run, write) -> None:
    """Starts, stops and exports of a tool are slices; their lateness is a slice before them."""
    process = recorded(run)
    key = process.open(UPDATE, NOW, tool="nsys")
    process.tell("failed", **key, hook="start", error="no nsys here")

    written = write()

    assert stretch(written, "rlprof: torch.start is late") == (-400, 100)
    assert stretch(written, "rlprof: torch.start") == (100, 140)
    assert stretch(written, "rlprof: torch.stop is late") == (500, 550)
    assert stretch(written, "rlprof: torch.stop") == (550, 800)
    assert stretch(written, "rlprof: torch.export") == (1000, 2000)
    assert written.track("rlprof: torch.stop") == ("actor 0/2 · node-a", "rlprof")
    assert written.track("rlprof: torch.export") == ("actor 0/2 · node-a", "rlprof exports")
    args = written.named("rlprof: torch.stop")["args"]
    assert args == {"window": "2/update_actor", "target": "actor 0/2"}


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

    trainer, engine = "actor 0/2 · node-a", "rollout replica 1"
    begin = found["counters"][0]["ts"]
    assert [tuple(row.values()) for row in found["counters"]] == [
        (trainer, "rss_bytes value", begin, 1.5e9),
        (engine, "kv_cache_use value", begin + 5_000, 0.5),
        (engine, "requests_running value", begin + 5_000, 64.0),
        (trainer, "rss_bytes value", begin + 10_000, 2.5e9),
    ]
    assert found["errors"] == []


def lanes(written: Written) -> dict[str, list[str]]:
    """Return the names of the slices of each row, by time; rows are sorted by number."""
    found = {written.threads[key]: [] for key in sorted(written.threads)}
    for event in sorted(written.events, key=lambda event: event["ts"]):
        found[written.threads[event["pid"], event["tid"]]].append(event["name"])
    return found


def loop(process, number, start, *, parent=None):
    """Write a trajectory of 100 ns with a turn and a request; return its id and the turn's."""
    ours = {"trajectory": number}
    at = NOW + start
    root = process.span("span", "trajectory", at, at + 100, parent=parent, **ours)
    turn = process.span("span", "turn", at + 10, at + 90, parent=root, turn=0, **ours)
    process.span("span", "request", at + 20, at + 40, parent=turn, **ours)
    return root, turn


def test_concurrent_parts_of_a_trajectory_are_below_its_lane(run, write) -> None:
    """Concurrent tools, and a task that outlives its trajectory, are on a row below its lane."""
    process = run.process()
    (root, turn), _ = loop(process, "a", 0), loop(process, "b", 30)
    for number, end in enumerate((80, 85)):
        tool = {"trajectory": "a", "tool": f"t{number}"}
        process.span("span", "tool_call", NOW + 50, NOW + end, parent=turn, **tool)
    late = process.span("span", "late", NOW + 95, NOW + 135, parent=root, trajectory="a")
    process.span("span", "later", NOW + 120, NOW + 130, parent=late, trajectory="a")
    loop(process, "c", 130)
    loop(process, "d", 140)

    written = write()

    each = {name: [f"trajectory {name}", "turn", "request"] for name in "abcd"}
    assert lanes(written) == {
        "trajectories": [*each["a"], "tool_call t1", *each["d"]],
        "trajectories 1.2": ["tool_call t0", "late", "later"],
        "trajectories 2": [*each["b"], *each["c"]],
    }


def test_parts_of_a_trajectory_that_has_not_ended_share_a_lane(run, write) -> None:
    """Parts of a trajectory that was killed share one lane, by the id in their attributes."""
    process = run.process()
    for start in (0, 100):
        for number, name in ((7, "turn"), (8, "request")):
            at, missing = NOW + start + number, 1000 + start + number
            process.span("span", name, at, at + 90, parent=missing, trajectory=number)
    process.span("span", "said by hand", NOW, NOW + 1000, trajectory=7)

    assert lanes(write()) == {
        "spans": ["said by hand"],
        "trajectories": ["turn", "turn"],
        "trajectories 2": ["request", "request"],
    }


@pytest.mark.parametrize("layout", ["kineto", "compact"])
def test_only_the_selected_time_is_shown(run, tmp_path, layout) -> None:
    """Only events that reach into the selected time are on the timeline."""
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
    """Perfetto draws an arrow to each member's phase of the same step, name and occurrence."""
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
    """Two workers write the same bytes as one; a killed worker is an error without a draft."""
    two_ranks(run)
    alone = run.export(tmp_path / "alone").read_bytes()
    monkeypatch.setattr(_pool, "_SMALL", 0)
    monkeypatch.setattr(_pool, "_cores", lambda: 2)
    monkeypatch.setattr(_pool, "_can_be_copied", lambda: True)

    assert run.export(tmp_path / "together").read_bytes() == alone

    monkeypatch.setattr(_pool, "move", _die)

    assert "was killed; export less: --step" in refused(MemoryError, run.export, tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
