"""The timeline holds every trace and span of a run, as strict JSON and on one clock."""

import gzip
import json
import random
import tracemalloc
from collections import Counter

import pytest

from rlprof.testing import ExporterTests
from rlprof.types import Target, Window
from rlprof_timeline import Timeline
from tests.perfetto_engine import query_all
from tests.timeline.builder import NOW, ROLLOUT, UPDATE, Written, as_trace, two_ranks


@pytest.mark.slow
class TestTimeline(ExporterTests):
    plugin = Timeline


def test_all_events_are_kept_with_their_content(run, write) -> None:
    """Every event of a trace is kept once, with its name, category, phase and arguments."""
    phases = "XBEiCbnesftPNOD"
    events = [
        {"ph": phase, "name": f"{phase} {n}", "cat": "c,d", "pid": n % 3, "tid": n % 5, "ts": n,
         "args": {"n": n, "list": [1, 2.5, None, True, {"deep": "é🚀"}]}, "s": "t", "tts": 12.5}
        for n, phase in enumerate(phases * 20)
    ]  # fmt: skip
    run.process().trace(ROLLOUT, events, NOW)

    written = write()

    assert written.about["sources"][1]["events"] == len(events) == len(written.events)
    kept = ("ph", "name", "cat", "args", "s", "tts")
    for event in events:  # counters of two tools have names of their own
        event["name"] = ("torch · " if event["ph"] == "C" else "") + event["name"]
    before = Counter(json.dumps([event[key] for key in kept]) for event in events)
    after = Counter(json.dumps([event[key] for key in kept], default=float)
                    for event in written.events)  # fmt: skip
    assert after == before


def test_processes_and_threads_are_named_ordered_and_apart(run, write) -> None:
    """Each target, also an engine of a driver, is one process; Kineto's own marks are left out."""
    run.process("rollout", 0, 1, "node-c")
    two_ranks(run)
    driver = run.process("driver", 0, 1, "node-a")
    driver.span("span", "plan", NOW, NOW + 5)
    for number in (0, 1):
        driver.engine = Target("rollout", number, 2, replica=number)
        event = {"ph": "X", "name": f"batch {number}", "pid": 9, "tid": 7, "ts": 1}
        driver.trace(ROLLOUT, [event], NOW)
    run.process("critic", 10, 11).span("span", "late", NOW, NOW + 5)
    run.process("critic", 2, 11).span("span", "early", NOW, NOW + 5)

    written = write()

    assert written.order == [
        "driver 0/1 · node-a",
        "actor 0/2 · node-a",
        "actor 1/2 · node-b",
        "critic 2/11 · node-a",
        "critic 10/11 · node-a",
        "rollout 0/1 · node-c",
        "rollout replica 0",
        "rollout replica 1",
    ]
    actor, gpu = "actor 0/2 · node-a", "torch · GPU 0 stream 7"
    assert written.track("kernel 0.0") == written.track("kernel 0.1") == (actor, gpu)
    assert written.track("kernel 1.0") == ("actor 1/2 · node-b", gpu)
    for number in (0, 1):
        assert written.track(f"batch {number}") == (f"rollout replica {number}", "torch · thread 7")
        assert f"rollout replica {number}" in [one["target"] for one in written.about["sources"]]
    pid = written.named("op 0.0")["pid"]
    assert [name for key, name in sorted(written.threads.items()) if key[0] == pid] == [
        "steps", "phases", gpu, "torch · thread 4001 (python3)"
    ]  # fmt: skip
    assert [about["events"] for about in written.about["sources"][2:4]] == [6, 6]
    assert {event["s"] for event in written.events if event["ph"] == "i"} == {"t"}
    numbers = [*written.processes, *(tid for _, tid in written.threads)]
    assert all(type(number) is int and 0 < number < 2**31 for number in numbers)
    assert not set(written.processes) & {tid for _, tid in written.threads}


def test_tracks_are_named_by_the_part_of_their_trace(run, write) -> None:
    """Tracks are named and sorted by the part of a trace; a repeated part has its own tracks."""
    process = run.process("rollout", 0, 1)
    for part in ("worker 10 decode", "worker 2 prefill", "", "worker 2 decode", "worker 2 decode"):
        event = {"ph": "X", "name": part, "pid": 0, "tid": 7, "ts": 1}
        header = {"epoch_ns": NOW, "error_ns": 2_000}
        process.artifact(ROLLOUT, as_trace([event], header), part=part)

    written = write()

    assert written.order[1:] == []
    assert [name for _, name in sorted(written.threads.items())] == [
        f"torch{part} · thread 7"
        for part in (
            "", " · worker 2 decode", " · worker 2 decode 2", " · worker 2 prefill",
            " · worker 10 decode",
        )
    ]  # fmt: skip
    assert written.track("worker 2 prefill")[1] == "torch · worker 2 prefill · thread 7"


def test_ids_are_shared_within_a_trace_and_nowhere_else(run, write) -> None:
    """Flow, async and bind ids are equal within a trace, and differ between traces."""
    flow = [{"ph": phase, "cat": "f", "name": "flow", "id": 5} for phase in "stf"]
    asynchronous = [{"ph": phase, "cat": "a", "name": "async", "id": "0x5"} for phase in "bne"]
    nested = [{"ph": phase, "cat": "a", "name": "two", "id2": {"local": "x"}} for phase in "be"]
    bound = [{"ph": "X", "name": "bound", "bind_id": 9, "dur": 1, "flow_out": True}]
    events = [
        {"pid": 1, "tid": 1, "ts": n, **event}
        for n, event in enumerate([*flow, *asynchronous, *nested, *bound])
    ]
    for rank in (0, 1):
        process = run.process(rank=rank)
        for window in (ROLLOUT, UPDATE):
            process.trace(window, events, NOW)

    written = write()

    files = [written.events[n : n + len(events)] for n in range(0, 4 * len(events), len(events))]

    def own(one):
        return one["name"], one.get("id2", {}).get("local") or one.get("id") or one["bind_id"]

    ids = [{own(one) for one in file} for file in files]
    assert [len(one) for one in ids] == [len({name for name, _ in one}) for one in ids] == [4] * 4
    assert len({number for one in ids for _, number in one}) == 16


def test_spans_stand_on_lanes_with_their_arguments(run, write) -> None:
    """Steps, phases and spans have lanes; nested spans share one, overlapping ones do not."""
    process = run.process()
    step = process.span("step", "step 2", NOW, NOW + 1000, step=2)
    phase = process.span("phase", "rollout", NOW, NOW + 900, step=2, parent=step, occurrence=1)
    process.span("phase", "reward", NOW + 800, NOW + 950, step=2, parent=step)
    first = process.span("span", "first", NOW + 10, NOW + 500, parent=phase, tokens=12, step_=1)
    process.span("span", "in first", NOW + 20, NOW + 30, parent=first, thread="mine", when=0.5)
    process.span("span", "second", NOW + 20, NOW + 600, parent=phase)
    process.span("span", "third", NOW + 500, NOW + 700, parent=phase)
    process.span("span", "outlives", NOW + 400, NOW + 501, parent=first)

    written = write()

    lanes = {event["name"]: written.track(event["name"])[1] for event in written.events}
    assert lanes == {
        "step 2": "steps",
        "rollout": "phases",
        "reward": "phases 2",
        "first": "spans",
        "in first": "spans",
        "second": "spans 2",
        "third": "spans",
        "outlives": "spans 3",
    }
    assert written.named("rollout")["args"] == {"step": 2, "occurrence": 1, "thread": 77}
    assert written.named("first")["args"] == {
        "step": None, "occurrence": 0, "thread": 77, "tokens": 12, "step_": 1,
    }  # fmt: skip
    args = written.named("in first")["args"]
    assert (args["thread"], args["thread (attribute)"], args["when"]) == (77, "mine", 0.5)


HOSTILE = [
    "back\\slash", "C:\\", 'a "quoted" name', "line\nbreak\tand\x00zero", "half \ud800 pair",
    '\udfff"', "Größe 奖励 🚀", "", '\\u00f6"\\"',
]  # fmt: skip


def test_no_text_needs_an_escape_and_all_is_json(run, write) -> None:
    """Quotes, backslashes, control characters, half pairs and NaN are replaced in the file."""
    events = [
        {"ph": "X", "name": name, "cat": name, "pid": name, "tid": name, "ts": n, "dur": 1,
         "args": {name: [name], "deep": {"x": name}}}
        for n, name in enumerate(HOSTILE)
    ]  # fmt: skip
    process = run.process(host='no"de\\')
    at = json.dumps({"ph": "X", "cat": "", "pid": 1, "tid": 1, "ts": 99, "dur": 1})
    numbers = '{"name": "odd", "args": {"a": NaN, "b": -Infinity, "c": 1e999, "d": 1.25}, '
    process.trace(ROLLOUT, [*events, numbers + at[1:]], NOW, clock='a "clock"\\')
    process.span("span", 'C:\\"', NOW, NOW + 1, path="C:\\")

    written = write()

    assert "\\" not in written.text
    by_time = sorted(written.events, key=lambda event: (event["ts"], len(event["name"])))
    names = [event["name"] for event in by_time if event["cat"] != "rlprof.spans"]
    assert names == [
        "back/slash", "C:/", "a 'quoted' name", "line break and zero", "half \ufffd pair",
        "\ufffd'", "Größe 奖励 🚀", "", "/u00f6'/'", "odd",
    ]  # fmt: skip
    assert written.named("odd")["args"] == {"a": "NaN", "b": "-Infinity", "c": "1E+999", "d": 1.25}
    assert written.named("C:/'")["args"]["path"] == "C:/"


def test_the_first_object_describes_the_timeline(run, write) -> None:
    """The first object of the file has the run, its clock, its sources, and what each lacks."""
    process = run.process()
    process.span("span", "s", NOW, NOW + 1)
    path = process.trace(ROLLOUT, [{"ph": "i", "pid": 1, "ts": 0, "name": "e"}], NOW)
    unsure = process.trace(UPDATE, [], NOW, error_ns=None)
    with (run.path / f"spans/{process.name}.jsonl").open("ab") as cut:
        cut.write(b'{"kind":"pha')

    written = write()

    assert next(iter(written.all)) == "rlprof"
    common = {"target": "actor 0/2", "events": 1, "problems": []}
    trace = {**common, "tool": "torch", "clock": "made up"}
    about = {"window": "2/update_actor", "error_ns": None, "events": 0}
    assert written.about == {
        "run": "a-run",
        "attempt": 1,
        "epoch_ns": NOW - 1_000,
        "error_ns": 2_000,
        "method": "wall clock of each host",
        "sources": [
            {**common, "file": f"spans/{process.name}.jsonl", "error_ns": 150},
            {**trace, "file": path, "window": "2/rollout", "error_ns": 2_000},
            {**trace, **about, "file": unsure, "problems": ["the error of its clock is unknown"]},
        ],
        "left_out": [{"file": f"spans/{process.name}.jsonl", "reason": "1 cut line skipped"}],
        "problems": [f"spans/{process.name}.jsonl: ends in the middle of a line"],
        "check": {"clocks": []},
    }


UNREADABLE = {
    "is not there": None,
    "is empty": b"",
    "is no JSON": gzip.compress(b"<html>"),
    "has no rlprof object, so its clock is unknown": gzip.compress(b'{"traceEvents": []}'),
}
GOOD = as_trace([{"ph": "X", "name": "good", "pid": 1, "ts": 1, "dur": 1}], {"epoch_ns": NOW})


# failures.md: trace-left-out
@pytest.mark.parametrize("reason", UNREADABLE)
def test_an_unreadable_trace_is_left_out_with_the_reason(run, write, caplog, reason) -> None:
    """The file, the log and a slice for the window have the reason; other traces are shown."""
    process = run.process()
    bad = process.artifact(ROLLOUT, UNREADABLE[reason])
    process.artifact(UPDATE, GOOD)

    written = write()

    assert written.about["left_out"] == [{"file": bad, "reason": reason}]
    assert caplog.messages == [f"{bad}: {reason}; left out of the timeline"]
    assert written.named("good")["dur"] == 1
    assert written.named("left out: torch 2/rollout")["args"]["notes"] == reason


def test_windows_without_a_trace_are_shown(run, write) -> None:
    """A window without a trace is a slice that links its file, or has its state and notes."""
    process = run.process()
    file = process.artifact(ROLLOUT, b"", tool="torch_memory", kind="files")
    key = process.open(ROLLOUT, NOW + 500_000, tool="nsys")
    process.tell("failed", **key, hook="start", error="no nsys here")
    process.open(UPDATE, NOW + 10**9)

    written = write()

    linked = written.named("torch_memory 2/rollout")
    assert (written.epoch_ns(linked), linked["dur"]) == (NOW, 1000)
    assert linked["args"] == {"state": "whole", "file": file}
    failed = written.named("failed: nsys 2/rollout")
    assert failed["args"] == {"state": "failed", "notes": "start: no nsys here"}
    lost = written.named("lost: torch 2/update_actor")
    assert written.epoch_ns(lost) + lost["dur"] * 1000 == NOW + 60 * 10**9  # its last clock
    assert written.track(linked["name"]) == ("actor 0/2 · node-a", "windows")
    assert written.track(failed["name"]) == ("actor 0/2 · node-a", "windows 2")


def test_one_trace_at_a_time_is_in_memory(run, tmp_path) -> None:
    """An export of four traces needs less than 1.3 times the memory of one."""
    at = {"ph": "X", "pid": 1, "tid": 1, "dur": 0.5}
    events = [{**at, "name": f"op {n}", "ts": n, "args": {"n": n}} for n in range(2_000)]
    process, peaks = run.process(), []
    for step in range(2, 6):
        process.trace(Window(step, step + 1), events, NOW)
        if step in (2, 5):
            tracemalloc.start()
            run.export(tmp_path / "out")
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.slow
def test_perfetto_drops_none_of_many_overlapping_spans(run, tmp_path) -> None:
    """Perfetto shows all of 2000 random, overlapping spans with their begins and durations."""
    chance = random.Random(7)  # noqa: S311 -- the same spans each time
    process = run.process()
    expected = []
    for n in range(2_000):
        start = chance.randrange(10**6)
        end = start + chance.choice([0, 1, 999, chance.randrange(10**5)])
        parent = chance.choice([None, chance.randrange(1, n + 2)])
        process.span("span", f"span {n:04}", NOW + start, NOW + end, parent=parent)
        expected.append((start, end - start))
    file = run.export(tmp_path / "out")

    rows = query_all(
        file,
        ours="select name, ts, dur from slice where name < 'span 1000' order by name",
        rest="select name, ts, dur from slice where name >= 'span 1000' order by name",
        errors="select name from stats where severity = 'error' and value > 0",
    )

    zero = Written(file).about["epoch_ns"]
    found = [(zero + row["ts"] - NOW, row["dur"]) for row in rows["ours"] + rows["rest"]]
    assert (found, rows["errors"]) == (expected, [])
