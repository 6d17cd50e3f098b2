"""Traces that rlprof did not make: their rank and clock are guessed, and the guess is logged."""

import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rlprof import plugins
from rlprof_timeline import Timeline
from rlprof_timeline._loose import of_files
from rlprof_timeline._tracks import PROCESSES, Tracks
from rlprof_timeline._write import write
from tests.cases import cases
from tests.perfetto_engine import query_all
from tests.timeline.builder import NOW, Written, as_trace
from tests.timeline.layouts import LAYOUTS, document

BASE = NOW - 1_000_000_000


def laid(folder: Path) -> Written:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hooks, out = plugins.hooks(Timeline()), folder / "out"
    out.mkdir()
    (file,) = hooks.render_files(files=files, out=out, options={})
    return Written(file)


def one(name: str, ts: int, layout: str = "kineto", **more: Any) -> str:
    event = {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": 1000, **more}
    return LAYOUTS[layout](event)


def test_the_three_generations_of_kinetos_clock_meet(tmp_path) -> None:
    """Traces with Kineto's three kinds of clock are aligned; an undated one is put first."""
    absolute = f'{{"ph": "X", "name": "2023", "pid": 1, "tid": 1, "ts": {NOW // 1000}, "dur": 1}}'
    exact = one("2024", NOW + 1_001, "kineto before")
    late = one("late 2024", 1_000_002_002, "kineto before")
    now = one("now", 1_000_003_003)
    behind = gzip.compress(document([late], {}, f',\n  "baseTimeNanoseconds": {BASE}\n'))
    (tmp_path / "a.json").write_bytes(document([absolute], {"schemaVersion": 1}))
    (tmp_path / "b.json").write_bytes(document([exact], {"schemaVersion": 1}))
    (tmp_path / "c.json.gz").write_bytes(behind)
    (tmp_path / "d.json").write_bytes(document([now], {"baseTimeNanoseconds": BASE}))
    (tmp_path / "e.json").write_bytes(document([one("undated", 77_000)], {}))

    written = laid(tmp_path)

    times = {event["name"]: written.epoch_ns(event) - NOW for event in written.events}
    assert times == {"2023": 0, "2024": 1_001, "late 2024": 2_002, "now": 3_003, "undated": 0}
    assert 0 < NOW - written.about["epoch_ns"] <= 2_000
    clocks = [source["clock"] for source in written.about["sources"]]
    base = "baseTimeNanoseconds of Kineto"
    assert clocks[:4] == ["epoch microseconds", "epoch microseconds", base, base]
    told = "its times have no date: laid at the beginning of the others"
    assert written.about["sources"][4]["problems"][0] == told


def test_a_trace_of_rlprof_without_its_run_names_its_target(tmp_path, caplog) -> None:
    """A trace of rlprof has the target and clock of its header; traces are sorted by target."""
    targets = {
        "a": {"role": "ref", "rank": 0, "world_size": 1},
        "b": {"role": "actor", "rank": 10, "world_size": 16, "replica": None},
        "c": {"role": "actor", "rank": 9, "world_size": 16},
        "d": {"role": "rollout", "rank": 0, "world_size": 1, "replica": 2, "worker": 1},
        "rank7": {"role": "actor", "rank": "9", "world_size": None},
    }
    for name, target in targets.items():
        header = {"epoch_ns": NOW, "error_ns": 5, "target": target}
        (tmp_path / f"{name}.json.gz").write_bytes(as_trace([one(name, 1_000)], header))

    written = laid(tmp_path)

    assert {written.epoch_ns(event) for event in written.events} == {NOW + 1_000}
    assert written.about["error_ns"] == 5
    assert caplog.messages == [
        "rank7.json.gz: rank 7 (by its name); clock: that of rlprof",
        "c.json.gz: actor 9/16 (by rlprof); clock: that of rlprof",
        "b.json.gz: actor 10/16 (by rlprof); clock: that of rlprof",
        "a.json.gz: ref 0/1 (by rlprof); clock: that of rlprof",
        "d.json.gz: rollout replica 2 worker 1 (by rlprof); clock: that of rlprof",
    ]


@cases(
    "file, head, whose, by",
    ("x.json", {"distributedInfo": {"rank": 3, "world_size": 8}}, "rank 3/8", "distributedInfo"),
    ("actor_rank12_step3.json", {}, "rank 12", "its name"),
    ("engine-DP1-TP-2.json", {}, "dp 1 tp 2", "its name"),
    ("frank5.json", {}, "", ""),
)
def test_ranks_are_guessed_and_logged(tmp_path, caplog, *, file, head, whose, by) -> None:
    """The rank of a trace is guessed from torch's distributedInfo or the file name, and logged."""
    head = {"baseTimeNanoseconds": NOW, **head}
    (tmp_path / file).write_bytes(document([one("e", 0)], head))

    written = laid(tmp_path)

    stem = file.removesuffix(".json").removesuffix(".trace")
    assert written.track("e") == (
        (f"{whose} · {stem}", "thread 7") if whose else (f"{stem} · process 7", "thread 7")
    )
    (source,) = written.about["sources"]
    assert (source.get("rank", ""), source.get("rank_by", "")) == (whose, by)
    words = f"{whose} (by {by})" if by else "no rank"
    assert caplog.messages == [f"{file}: {words}; clock: baseTimeNanoseconds of Kineto"]


# failures.md: far-apart
@cases(
    "base, words",
    (86_400 * 10**9, "begins 20727 days before the others"),
    (BASE + 200 * 86_400 * 10**9, "begins 200 days after the others"),
)
def test_a_trace_of_another_year_is_warned_of(tmp_path, caplog, base, words) -> None:
    """A trace that begins days before or after the others keeps its time, with a warning."""
    for rank, epoch in enumerate([BASE, base, BASE]):
        content = document([one(f"of {rank}", 1_001)], {"baseTimeNanoseconds": epoch})
        (tmp_path / f"rank{rank}.json").write_bytes(content)

    written = laid(tmp_path)

    assert [written.epoch_ns(event) for event in written.events] == [
        BASE + 1_001, base + 1_001, BASE + 1_001
    ]  # fmt: skip
    (told,) = [words for words in caplog.messages if "days" in words]
    assert told.startswith(f"rank1.json: {words}, so viewers show all traces less exactly")


def test_traces_of_two_steps_in_a_folder_are_compared_by_step(tmp_path, caplog) -> None:
    """Clocks are compared only between files that overlap in time."""
    for step in range(2):
        for rank in range(2):
            ts = step * 60 * 10**9 + rank * 300
            events = [one("gloo:all_reduce", ts + n * 10**6) for n in range(8)]
            content = document(events, {"baseTimeNanoseconds": NOW})
            (tmp_path / f"step{step}_rank{rank}.json").write_bytes(content)

    check = laid(tmp_path).about["check"]

    assert [
        (clock["host"], clock["reference"], clock["ahead_ns"]) for clock in check["clocks"]
    ] == [
        ("step0_rank1.json", "step0_rank0.json", 300),
        ("step1_rank1.json", "step1_rank0.json", 300),
    ]
    assert not [told for told in caplog.messages if "collectives" in told]


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


@pytest.mark.slow
def test_every_event_keeps_its_time_and_content(timeline) -> None:
    """Every event of the real traces is on the timeline with its exact time and arguments."""
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


class OneAtATime(dict[Any, int]):
    """A dict that allows only lookups of single keys."""

    def keys(self) -> Any:
        raise AssertionError

    __iter__ = keys


def test_threads_are_numbered_one_by_one_and_processes_beyond_those_reserved_share_one() -> None:
    """Threads are numbered without a scan of the others; surplus processes share one number."""
    tracks = Tracks("", 100_000, 1, is_one=False)
    tracks._tids = OneAtATime()

    found = {tracks.at(process, thread) for process in range(30) for thread in range(30)}

    assert len(found) == 900
    tracks = Tracks("", 100_000, 1, is_one=False)
    found = {tracks.at(process, 0)[0] for process in range(PROCESSES + 10)}
    assert found == set(range(1, 1 + PROCESSES))


@pytest.mark.slow
def test_perfetto_sees_what_it_sees_in_each_alone(timeline) -> None:
    """Perfetto finds the same slices, arrows, errors and threads as in each trace alone."""
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
