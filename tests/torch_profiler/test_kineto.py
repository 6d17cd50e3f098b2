"""Raw Kineto traces of every kind come out strict, compressed and placed on the clock."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlprof_torch import _clock
from rlprof_torch._kineto import finish
from tests.cases import cases
from tests.torch_profiler.kineto_texts import BASE, kineto, old_kineto, old_span, span


def refuse_duplicates(pairs):
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), f"twice the same key: {keys}"
    return dict(pairs)


def read(out: Path) -> dict[str, Any]:
    text = gzip.decompress(out.read_bytes()).decode("utf-8")
    trace = json.loads(text, parse_constant=pytest.fail, object_pairs_hook=refuse_duplicates)
    json.dumps(trace, ensure_ascii=False).encode("utf-8")  # no half surrogate pair
    assert next(iter(trace)) == "rlprof"
    return trace


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
        assert len(gzip.decompress(out.read_bytes())) == found.text_size
        return trace, found

    return run


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")  # torch 2.10 and 2.11
def test_a_torch_trace_keeps_names_with_quotes(tmp_path):
    """A trace that torch wrote as broken JSON comes out strict; broken metadata are dropped."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    raw = tmp_path / "raw.json"
    names = ['say "hi"', "}", '{"a": 1', "a\n  },\n  {\n", '"']
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
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
    found_names = [event["name"].replace("'", '"') for event in spans]  # torch 2.14 writes these
    assert [name.replace("\n", "") for name in names] == found_names
    assert {event["pid"] for event in spans} == {os.getpid()}
    assert "aten::add" in {event["name"] for event in trace["traceEvents"]}
    assert "hopeless" not in trace
    assert found.clock.startswith("baseTimeNanoseconds")
    assert (found.truncated, found.device_events, found.dropped) == (False, 0, 1)


@pytest.mark.parametrize("layout", ["lines", "old lines", "one line", "indent"])
def test_every_layout_gives_the_same(run, tmp_path, layout):
    """Every layout gives the same events; lines that are strict JSON pass byte for byte."""
    spans = [span(f"näme {number}", number) for number in range(40)]
    spans[7] = span("NaN \u2028 😀", 7)
    data = kineto(*spans)
    expected = json.loads(data)["traceEvents"]
    if layout == "old lines":
        data = old_kineto(*(old_span(event["name"], n) for n, event in enumerate(expected)))
    elif layout != "lines":
        plain = json.loads(data)
        data = json.dumps(plain, indent=None if layout == "one line" else 2).encode()

    trace, found = run(data)

    assert expected == trace["traceEvents"]
    assert (found.repaired, found.dropped, found.truncated) == (0, 0, False)
    assert (found.epoch_ns, trace["schemaVersion"]) == (BASE, 1)
    text = gzip.decompress((tmp_path / "trace.json.gz").read_bytes()).decode()
    assert (",\n".join(spans) in text) == (layout == "lines")


HOSTILE = kineto(
    span("plain", 0), span('say "hi"', 1), span("ü", 2, args='"Concrete Inputs": ["a "b" c", NaN]')
)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(HOSTILE) - 1))
def test_any_cut_gives_whole_events_or_a_clear_error(run, cut):
    """A file that is cut anywhere gives the events before the cut, or one clear error."""
    problem = ""
    try:
        trace, found = run(HOSTILE[:cut])
    except ValueError as error:
        problem = str(error)

    if problem:
        assert cut <= HOSTILE.index(b'"traceEvents": [') + 16
        assert re.search(r"raw\.json: is (empty|no JSON|cut short); \w+", problem)
        return
    whole = sum(HOSTILE.index(end) + 100 < cut for end in (b"0.250", b"1.250", b"2.250"))
    assert (found.truncated, found.dropped) in {(True, 0), (True, 1), (False, 1)}
    assert found.events >= whole
    assert ["plain", 'say "hi"', "ü"][: found.events] == [e["name"] for e in trace["traceEvents"]]


@cases(
    "args, expected",
    ('"a": ["he said "x", twice", 1]', {"a": ['he said "x", twice', 1]}),
    ('"desc": "de/"sc", "n": 1', {"desc": 'de"sc', "n": 1}),
    ('"path": "C:\\dir\\x", "tab": "a\tb"', {"path": "C:\\dir\\x", "tab": "a\tb"}),
    ('"a": "b\udcff", "h": "\\ud83d", "c": "\\ud83d\\ude00"', {"a": "b�", "h": "�", "c": "😀"}),
    ('"occupancy": nan, "x": -inf, "n": "nan"', {"occupancy": None, "x": None, "n": "nan"}),
    ('"a": , "b": 1', {"unreadable": '"a": , "b": 1'}),
)
def test_args_are_repaired_or_kept_as_text(run, args, expected):
    """Damaged args are repaired, and args that cannot be read are kept as text."""
    trace, found = run(kineto(span("a", 0), span("x", 1, args=args)))

    event = trace["traceEvents"][1]
    assert expected == event["args"]
    assert (event["name"], event["pid"], event["ts"]) == ("x", 7001, 1.5)
    assert (found.repaired <= 1, found.dropped) == (True, 0)


@cases(
    "spans, names, dropped",
    ([span('say \\"hi\\"', 1)], ['say "hi"'], 0),  # a Kineto that escapes quotes itself (2026)
    ([span("a", 0), '  {\n    "ph": "X",\n    "pid": ,\n  }', span("b", 1)], ["a", "b"], 1),
    ([], [], 0),
    ids=["escaped", "hopeless", "none"],
)
def test_sound_events_are_not_changed(run, spans, names, dropped):
    """An event beyond repair is dropped alone, and a recording may be empty."""
    trace, found = run(kineto(*spans))

    assert [event["name"] for event in trace["traceEvents"]] == names
    assert (found.dropped, found.repaired) == (dropped, 0)


FORGED = '", "baseTimeNanoseconds": 5, "x": "'
FOUND = kineto(span("other", 1), span("rlprof.clock", 2))  # the mark's span: 2500 to 4750 ns
LOST = old_kineto(old_span("rlprof.clock", 2)).split(b"\n  ],")[0]
BY_BASE = "baseTimeNanoseconds plus ts; "
BY_MARK = "ts set by the first mark, its base is missing; "
NONE_GIVEN, ONE = "unchecked, no mark was given", "checked by 1 of 1 marks"
CLOCKS = {
    # a span's name cannot pass for the base
    "base at the end": (old_kineto(old_span(FORGED, 1)), (), BASE, None, BY_BASE + NONE_GIVEN),
    "base cut off": (LOST, (), None, None,
                     "unknown, the base of ts is missing and there is no mark"),
    "base cut off, a mark": (LOST, [(BASE, BASE + 4000)], BASE - 2500, 4000, BY_MARK + ONE),
    # the error: how far the span lies outside its bracket, plus the bracket
    "inside": (FOUND, [(BASE, BASE + 4750)], BASE, 4750, BY_BASE + ONE),
    "outside": (FOUND, [(BASE + 5000, BASE + 6000)], BASE, 3500, BY_BASE + ONE),
    # each span is held against its nearest mark
    "one of two": (FOUND, [(BASE, BASE + 10), (BASE + 2500, BASE + 4750)], BASE, 2250,
                   BY_BASE + "checked by 1 of 2 marks"),
    "none found": (kineto(span("x", 2)), [(BASE, BASE + 10)], BASE, None,
                   BY_BASE + "unchecked, no mark was found"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOCKS)
def test_the_clock_is_found_and_checked_by_the_marks(run, name):
    """The base of `ts` is found in the file or by a mark, and marks give its error."""
    data, marks, epoch_ns, error_ns, clock = CLOCKS[name]

    _, found = run(data, marks=marks)

    assert (found.epoch_ns, found.error_ns, found.clock) == (epoch_ns, error_ns, clock)


def test_device_events_are_counted(run):
    """Kernels and copies count, runtime calls and flows do not."""
    cats = ["kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_runtime", "cpu_op"]

    _, found = run(old_kineto(*(old_span("k", n, cat=cat) for n, cat in enumerate(cats))))

    assert found.device_events == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "is empty; "), (b"hello", "is no JSON; "), (b'{"a": 1}', "has no traceEvents; ")],
)
def test_no_trace_is_an_error_in_one_sentence(tmp_path, data, message):
    """A file without a trace is refused by name, and nothing is written."""
    raw = tmp_path / "raw.json"
    raw.write_bytes(data)

    with pytest.raises(ValueError) as error:
        finish(raw, tmp_path / "a.json.gz", header={})

    assert str(error.value).startswith(f"{raw}: {message}")
    assert [raw] == list(tmp_path.iterdir())


@pytest.mark.parametrize("block", [16, 1000, 1 << 20])
def test_marks_are_found_wherever_a_block_ends(tmp_path, monkeypatch, block):
    """Only slices named `rlprof.clock` with a valid time and duration are marks."""
    monkeypatch.setattr(_clock, "_BLOCK", block)
    events = [{"ph": "X", "name": "x" * 9000, "ts": 1.5, "dur": 1.0}]
    for at in (20, 10):
        events += [{"ph": "X", "name": "rlprof.clock", "ts": at + 0.5, "dur": 2.0},
                   {"ph": "X", "name": "rlprof.clock", "ts": "odd", "dur": 2.0},
                   {"ph": "X", "name": "rlprof.clock", "ts": at + 0.5},
                   {"ph": "X", "name": "a", "ts": 1.5, "dur": 9.0, "args": {"b": "rlprof.clock"}},
                   {"ph": "X", "name": "y" * 5000, "ts": 1.5, "dur": 1.0}]  # fmt: skip
    (tmp_path / "raw").write_text(json.dumps({"traceEvents": events}))

    assert _clock.mark_spans(tmp_path / "raw") == [(10_500, 2000), (20_500, 2000)]
