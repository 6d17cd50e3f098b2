"""Traces that rlprof did not make: whose they are and when they were is guessed, and told."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from rlprof import plugins
from rlprof_cli import main
from rlprof_timeline import Timeline
from tests.timeline.builder import NOW, Written, as_trace
from tests.timeline.layouts import LAYOUTS, document

BASE = NOW - 1_000_000_000
RANK_3 = {"rank": 3, "world_size": 8}


def laid(folder: Path) -> Written:
    """Export all files of *folder*."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hooks, out = plugins.hooks(Timeline()), folder / "out"
    out.mkdir()
    (file,) = hooks.render_files(files=files, out=out, options={})
    return Written(file)


def one(name: str, ts: int, layout: str = "kineto", **more: Any) -> str:
    """Encode one slice; *ts* in ns."""
    event = {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": 1000, **more}
    return LAYOUTS[layout](event)


def test_the_three_generations_of_kinetos_clock_meet(tmp_path) -> None:
    """A base before or behind the events, or none; what has no date stands at the beginning."""
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


def test_a_trace_of_rlprof_without_its_run_says_whose_it_is(tmp_path, caplog) -> None:
    """And when it was; roles stand in order, and ranks in them; no target is guessed by name."""
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


@pytest.mark.parametrize(
    ("file", "head", "whose", "by"),
    [
        ("x.json", {"distributedInfo": RANK_3}, "rank 3/8", "distributedInfo"),
        ("actor_rank12_step3.json", {}, "rank 12", "its name"),
        ("engine-DP1-TP-2.json", {}, "dp 1 tp 2", "its name"),
        ("frank5.json", {}, "", ""),
    ],
)
def test_ranks_are_guessed_and_told(tmp_path, caplog, *, file, head, whose, by) -> None:
    """From what torch wrote of the process group, or from the name; the tracks are called so."""
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
@pytest.mark.parametrize(
    ("base", "words"),
    [
        (86_400 * 10**9, "begins 20727 days before the others"),
        (BASE + 200 * 86_400 * 10**9, "begins 200 days after the others"),
    ],
)
def test_a_trace_of_another_year_is_told(tmp_path, caplog, base, words) -> None:
    """It stays where it says it was; a viewer, which reads doubles, shows all less exactly."""
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
    """Files that do not overlap in time are of different windows, and no clock is blamed for it."""
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


def test_a_timeline_beside_the_traces_it_holds_is_none_of_them(tmp_path, caplog) -> None:
    """Else all of it would be there twice; alone it is shown, as any other trace."""
    (tmp_path / "a.json").write_bytes(document([one("a", 1_001)], {"baseTimeNanoseconds": BASE}))
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "old")]) == 0

    written = laid(tmp_path)
    again = laid(tmp_path / "old")

    assert [event["name"] for event in written.events] == ["a"]
    assert written.about["left_out"] == [
        {"file": "old/timeline.json.gz", "reason": "is a timeline of other files in this list"}
    ]
    assert "old/timeline.json.gz: is a timeline of other files in this list; left out" in (
        caplog.messages
    )
    assert again.epoch_ns(again.named("a")) == BASE + 1_001
