"""Raw Kineto traces of every kind come out strict, compressed and placed on the clock."""

from __future__ import annotations

import gzip
import json
import os
import re
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlprof_torch import _kineto
from rlprof_torch._kineto import finish

if TYPE_CHECKING:
    from pathlib import Path

BASE = 1790857026000000000


def refuse_constant(constant):
    """Refuse NaN and Infinity, which json.loads takes."""
    raise AssertionError(f"{constant} is not JSON")


def refuse_duplicates(pairs):
    """Refuse a key that an object has twice."""
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), f"twice the same key: {keys}"
    return dict(pairs)


def read(out: Path) -> dict[str, Any]:
    """Read a finished trace as the strictest reader would."""
    text = gzip.decompress(out.read_bytes()).decode("utf-8")
    trace = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_duplicates)
    json.dumps(trace, ensure_ascii=False).encode("utf-8")  # no half surrogate pair
    assert next(iter(trace)) == "rlprof"
    return trace


def span(name: str, number: int, *, args: str = '"External id": 1') -> str:
    """Write a span as torch 2.13 does: a key per line, the name unescaped."""
    return (
        f'  {{\n    "ph": "X",\n    "cat": "user_annotation",\n    "name": "{name}",\n'
        f'    "pid": {7000 + number},\n    "tid": 3,\n    "ts": {number}.500,\n'
        f'    "dur": {number}.250\n    ,\n    "args": {{\n      {args}\n    }}\n  }}'
    )


def old_span(name: str, number: int, *, cat: str = "user_annotation", ts: str = "") -> str:
    """Write a span as torch up to 2.12 does: several keys per line."""
    return (
        f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {7000 + number}, "tid": 3,'
        f'\n    "ts": {ts or f"{number}.500"}, "dur": {number}.250,\n'
        f'    "args": {{\n      "External id": 1\n    }}\n  }}'
    )


def kineto(*spans: str, metadata: str = "") -> bytes:
    """Wrap spans as torch 2.13 does."""
    head = f' {{\n    "schemaVersion": 1,\n    "deviceProperties": [],\n    \n{metadata}'
    clock = f'    "displayTimeUnit": "ms",\n    "baseTimeNanoseconds": {BASE},\n'
    events = ",\n".join(spans)
    text = f'{head}{clock}    "traceEvents": [\n    \n{events}\n  ],"traceName": "a.json" }}'
    return text.encode("utf-8", "surrogateescape")


def old_kineto(*spans: str, base: bool = True) -> bytes:
    """Wrap spans as torch 2.4 to 2.6 does, base at the end, or as 2.3, without one."""
    head = '\n{\n  "schemaVersion": 1,\n  "traceEvents": [\n'
    last = f',\n  "baseTimeNanoseconds": {BASE}' if base else ""
    text = head + ",\n".join(spans) + f'\n  ],\n  "traceName": "a.json"{last}\n}}'
    return text.encode()


@pytest.fixture(name="run")
def _run(tmp_path):
    """Finish some raw bytes; return the trace and what was found."""

    def run(data: bytes, **options):
        raw, out = tmp_path / "raw.json", tmp_path / "trace.json.gz"
        raw.write_bytes(data)
        found = finish(raw, out, header=options.pop("header", {"rank": 0}), **options)
        assert [raw, out] == sorted(tmp_path.iterdir())
        trace = read(out)
        assert found.events == len(trace["traceEvents"]) == trace["rlprof_counts"]["events"]
        assert (len(data), out.stat().st_size) == (found.bytes_in, found.bytes_out)
        assert len(gzip.decompress(out.read_bytes())) == found.text_size
        return trace, found

    return run


@pytest.mark.slow
def test_torch_trace_keeps_hostile_names_and_metadata(tmp_path):
    """A trace that torch wrote as broken JSON comes out strict: only half an object is dropped."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    raw = tmp_path / "raw.json"
    names = ['say "hi", "pid": 3', "}", '{"a": 1', 'x", "pid": 3, "y": "z', "a\n  },\n  {\n", '"']
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        profiler.add_metadata('k"ey', 'quo"te and \\')
        profiler.add_metadata_json("escaped", json.dumps({"desc": 'de"sc'}))
        profiler.add_metadata_json("number", "NaN")
        profiler.add_metadata_json("hopeless", '{"a": ')
        for name in names:
            with record_function(name):
                torch.add(torch.ones(2), 1)
    profiler.export_chrome_trace(str(raw))
    with pytest.raises(json.JSONDecodeError):
        json.loads(raw.read_bytes())

    found = finish(raw, tmp_path / "a.json.gz", header={"rank": 3})
    trace = read(tmp_path / "a.json.gz")

    spans = [event for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
    assert [name.replace("\n", "") for name in names] == [event["name"] for event in spans]
    assert {event["pid"] for event in spans} == {os.getpid()}
    assert "aten::add" in {event["name"] for event in trace["traceEvents"]}
    assert trace["escaped"] == {"desc": 'de"sc'}
    assert trace['k"ey'] == 'quo"te and /'
    assert trace["number"] is None
    assert "hopeless" not in trace
    assert (found.truncated, found.device_events, found.dropped) == (False, 0, 1)


def test_sound_events_pass_byte_for_byte(run, tmp_path):
    """What is strict already is not rewritten, so no number loses a digit."""
    spans = [span("aten::add", number) for number in range(3)]

    run(kineto(*spans))

    text = gzip.decompress((tmp_path / "trace.json.gz").read_bytes()).decode()
    assert ",\n".join(spans) in text


@pytest.mark.parametrize("layout", ["lines", "old lines", "one line", "indent"])
@pytest.mark.parametrize("block", [1 << 20, 250])
def test_every_layout_and_block_size_gives_the_same(run, monkeypatch, layout, block):
    """How the file is laid out or falls into blocks does not change what is read."""
    spans = [span(f"näme {number}", number) for number in range(40)]
    spans[7] = span("NaN \u2028 😀", 7)
    data = kineto(*spans)
    expected = json.loads(data)["traceEvents"]
    if layout == "old lines":
        data = old_kineto(*(old_span(event["name"], n) for n, event in enumerate(expected)))
    elif layout != "lines":
        plain = json.loads(data)
        data = json.dumps(plain, indent=None if layout == "one line" else 2).encode()
    monkeypatch.setattr(_kineto, "_BLOCK", block)

    trace, found = run(data)

    assert expected == trace["traceEvents"]
    assert (found.repaired, found.dropped, found.truncated) == (0, 0, False)
    assert found.epoch_ns == BASE


QUICK = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


HOSTILE = kineto(
    span("plain", 0),
    span('say "hi"', 1),
    span("ü", 2, args='"Concrete Inputs": ["a "b" c", NaN]'),
    metadata='      "k"ey": "va/"l",\n      "j": {"a": [1, 2]},\n',
)


@pytest.mark.slow
@QUICK
@given(cut=st.integers(0, len(HOSTILE) - 1), block=st.sampled_from([100, 9999]))
def test_any_cut_gives_whole_events_or_a_clear_error(run, cut, block):
    """Cut anywhere, the events before the cut are there, or one sentence says there are none."""
    problem = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kineto, "_BLOCK", block)
        try:
            trace, found = run(HOSTILE[:cut])
        except ValueError as error:
            problem = str(error)

    if problem:
        assert cut <= HOSTILE.index(b'"traceEvents": [') + 16
        assert re.search(r"raw\.json: (is empty|begins with|has no traceEvents).*; \w+", problem)
        return
    whole = sum(HOSTILE.index(end) + 100 < cut for end in (b"0.250", b"1.250", b"2.250"))
    assert found.truncated
    assert found.events >= whole
    assert ["plain", 'say "hi"', "ü"][: found.events] == [e["name"] for e in trace["traceEvents"]]


def test_hole_of_zero_bytes_ends_the_reading(run, monkeypatch):
    """After a crash of the machine, what stands before the hole is kept, in bounded memory."""
    monkeypatch.setattr(_kineto, "_LONGEST", 5000)
    monkeypatch.setattr(_kineto, "_BLOCK", 1000)
    data = kineto(*(span("a", number) for number in range(9)))

    trace, found = run(data[:1500] + bytes(20_000) + data[1500:])

    assert found.truncated
    assert found.events == data[:1500].count(b"\n  },") == 7
    assert trace["traceEvents"][-1]["pid"] == 7006


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ('"a": ["he said "x", twice", 1]', {"a": ['he said "x", twice', 1]}),
        ('"desc": "de/"sc", "n": 1', {"desc": 'de"sc', "n": 1}),
        ('"path": "C:\\dir\\x", "tab": "a\tb"', {"path": "C:\\dir\\x", "tab": "a\tb"}),
        ('"half": "a\udcffb", "pair": "\\ud83d\\ude00"', {"half": "a\ufffdb", "pair": "😀"}),
        ('"occupancy": nan, "x": -inf, "n": "nan"', {"occupancy": None, "x": None, "n": "nan"}),
        ('"a": , "b": 1', {"unreadable": '"a": , "b": 1'}),
    ],
)
def test_args_are_repaired_or_kept_as_text(run, args, expected):
    """Damaged args are read as they were meant; what cannot be read stays there to be seen."""
    trace, found = run(kineto(span("a", 0), span("x", 1, args=args)))

    event = trace["traceEvents"][1]
    assert expected == event["args"]
    assert (event["name"], event["pid"], event["ts"]) == ("x", 7001, 1.5)
    assert (found.repaired, found.dropped) == (1, 0)


def test_escaped_names_are_not_escaped_again(run):
    """A Kineto that escapes quotes itself (2026) is left alone."""
    trace, found = run(kineto(span('say \\"hi\\"', 1)))

    assert trace["traceEvents"][0]["name"] == 'say "hi"'
    assert found.repaired == 0


def test_hopeless_event_is_dropped_and_counted(run):
    """One event beyond repair costs itself only."""
    trace, found = run(kineto(span("a", 0), '  {\n    "ph": "X",\n    "pid": ,\n  }', span("b", 1)))

    assert [event["name"] for event in trace["traceEvents"]] == ["a", "b"]
    assert (found.dropped, found.repaired) == (1, 0)


def test_trace_without_events_is_a_trace(run):
    """A recording in which nothing happened is no error."""
    trace, found = run(kineto())

    assert trace["traceEvents"] == []
    assert (found.events, found.truncated) == (0, False)


def test_base_is_read_from_the_end_of_old_files(run):
    """Torch 2.4 to 2.6 write the base last; a span's name cannot pass for it."""
    forged = '", "baseTimeNanoseconds": 5, "x": "'

    _, found = run(old_kineto(old_span(forged, 1)))
    _, without = run(old_kineto(old_span(forged, 1, ts="1682725898236567"), base=False))

    assert found.epoch_ns == BASE
    assert (without.epoch_ns, without.clock) == (0, "ts is absolute; unchecked, no mark was given")


def test_lost_base_is_said_or_taken_from_a_mark(run):
    """When the end with the base was cut off, the first mark stands in for it; else None."""
    data = old_kineto(old_span("rlprof.clock", 2)).split(b"\n  ],")[0]

    _, unknown = run(data)
    _, marked = run(data, marks=[(BASE, BASE + 4000)])

    assert (unknown.epoch_ns, unknown.error_ns) == (None, None)
    assert unknown.clock == "unknown, the base of ts is missing and there is no mark"
    assert (marked.epoch_ns, marked.error_ns) == (BASE - 2500, 4000)
    assert marked.clock == "ts set by the first mark, its base is missing; checked by 1 of 1 marks"


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        ((0, 4750), 4750),
        ((0, 4000), 4750),
        ((5000, 6000), 3500),
    ],
)
def test_error_is_distance_outside_plus_width(run, mark, error):
    """The error of the clock: how far the span lies outside its bracket, plus the bracket."""
    bracket = (BASE + mark[0], BASE + mark[1])  # the span lies at 2500 to 4750

    _, found = run(kineto(span("other", 1), span("rlprof.clock", 2)), marks=[bracket])

    assert error == found.error_ns


def test_missing_mark_leaves_the_others_paired(run):
    """When one mark fell outside the recording, each span is held against its nearest."""
    marks = [(BASE, BASE + 10), (BASE + 2500, BASE + 4750)]

    _, found = run(kineto(span("rlprof.clock", 2)), marks=marks)
    _, none = run(kineto(span("x", 2)), marks=marks)

    assert (found.error_ns, found.clock.partition("; ")[2]) == (2250, "checked by 1 of 2 marks")
    assert (none.error_ns, none.clock.partition("; ")[2]) == (None, "unchecked, no mark was found")


def test_absolute_time_keeps_its_nanoseconds(run):
    """Epoch microseconds with decimals are read exactly, not as a float 0.25 us coarse."""
    data = old_kineto(old_span("rlprof.clock", 2, ts="1712195495505582.987"), base=False)

    _, found = run(data, marks=[(1712195495505582987, 1712195495505582987 + 2250)])

    assert (found.epoch_ns, found.error_ns) == (0, 2250)


def test_device_events_are_counted(run):
    """Kernels and copies count, runtime calls and flows do not."""
    cats = ["kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_runtime", "cpu_op"]

    _, found = run(old_kineto(*(old_span("k", n, cat=cat) for n, cat in enumerate(cats))))

    assert found.device_events == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty; record again, and check the space on that disk"),
        (b"hello", "begins with 'hello'; pass Kineto's raw .json"),
        (
            b'{"a": 1}',
            (
                "has no traceEvents, the export was cut short or this is not a trace;"
                " record again, and check the space on that disk"
            ),
        ),
    ],
)
def test_no_trace_is_an_error_in_one_sentence(tmp_path, data, message):
    """A file without a trace is refused by name, and nothing is written."""
    raw = tmp_path / "raw.json"
    raw.write_bytes(data)

    with pytest.raises(ValueError) as error:
        finish(raw, tmp_path / "a.json.gz", header={})

    assert f"{raw}: {message}" == str(error.value)
    assert [raw] == list(tmp_path.iterdir())


@pytest.mark.slow
def test_memory_depends_on_the_block_not_on_the_file(tmp_path, monkeypatch):
    """Of a file of eighty blocks no more than a few are in memory at once."""
    monkeypatch.setattr(_kineto, "_BLOCK", 1 << 15)
    raw = tmp_path / "raw.json"
    raw.write_bytes(kineto(*(span("aten::add", number) for number in range(14_000))))
    assert raw.stat().st_size > 80 << 15

    tracemalloc.start()
    finish(raw, tmp_path / "a.json.gz", header={})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < (1 << 20) + (20 << 15)  # 1 MB: where the base is looked for
