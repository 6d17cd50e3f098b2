"""torch_npu's trace on the wall clock."""

import gzip
import json

import pytest

from rlprof_npu._raw import first_error
from rlprof_npu._trace import finish, place_clock
from tests.cases import cases

AT = 1_795_380_511_000_000_000


def span(name, begin, dur=1.0, **more):
    """Return an event that begins *begin* ns after AT, with its time as torch_npu writes it."""
    ts = f"{(AT + begin) // 1000}.{begin % 1000:03d}"
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def finished(tmp_path, text, marks=()):
    """Return what `finish` says, and what it has written."""
    raw, out = tmp_path / "trace_view.json", tmp_path / "out.json.gz"
    raw.write_text(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False))
    found = finish(raw, out, header={"tool": "npu"}, marks=marks)
    with gzip.open(out) as file:
        return found, json.load(file)


def test_times_are_relative_and_exact(tmp_path):
    """`ts` is microseconds after the first event, to the nanosecond; `epoch_ns` is an int."""
    events = [
        span("b", 1_000_123, 2.5),
        span("a", 456) | {"pid": 2},
        {"ph": "M", "name": "process_labels", "pid": 1, "args": {"labels": "NPU 0"}},
        {"ph": "M", "name": "process_labels", "pid": 2, "args": {"labels": "CPU"}},
    ]

    found, trace = finished(tmp_path, events)

    assert next(iter(trace)) == "rlprof"
    assert trace["rlprof"]["epoch_ns"] == AT
    assert [one.get("ts") for one in trace["traceEvents"]] == [1000.123, 0.456, None, None]
    assert [one.get("dur") for one in trace["traceEvents"]] == [2.5, 1, None, None]
    assert (found.events, found.dropped, found.truncated) == (4, 0, False)
    assert trace["rlprof_counts"].items() >= {"events": 4, "device_events": 1}.items()
    assert "text_size" not in trace["rlprof_counts"]


@pytest.mark.parametrize(
    ("mark", "moved", "error"),
    [((8, 20), 0, 12), ((100, 120), 97, 20), ((0, 5), -10, 5), ((11, 15), 0, 5), ((11, 14), 0, 4)],
)
def test_a_clock_is_moved_only_if_a_span_lies_outside_its_mark(mark, moved, error):
    """A span outside its mark moves the clock, so that it lies in the middle of the mark."""
    assert place_clock([(10, 5)], [mark])[:2] == (moved, error)


def test_marks_move_the_clock(tmp_path):
    """A trace whose spans lie 0.25 s before their marks is moved by 0.25 s."""
    events = [span("rlprof.clock", 10_000, 5.0), span("rlprof.clock", 900_000, 5.0)]
    late = 250_000_000
    marks = [(AT + begin + late - 1000, AT + begin + late + 6000) for begin in (10_000, 900_000)]

    _, trace = finished(tmp_path, events, marks)

    assert trace["rlprof"]["epoch_ns"] == AT + 10_000 + late
    assert trace["rlprof"]["error_ns"] == 7000
    assert trace["rlprof"]["clock"] == (
        "as torch_npu says, moved by 250000000 ns; checked by 2 marks"
    )


@cases(
    "text, dropped, is_cut",
    (json.dumps([span("a", 0), span("b", 10)])[:-20], 1, True),
    ([span("a", 0), 7, {"name": "x"}, {"ph": "X"}, span("z", 0, ts="0.000"), ""], 5, False),
    ids=["cut", "odd"],
)
def test_invalid_entries_are_dropped_and_counted(tmp_path, text, dropped, is_cut):
    """An event that was cut, and entries without a valid phase and time, are dropped."""
    found, trace = finished(tmp_path, text)

    assert (found.events, found.dropped, found.truncated) == (1, dropped, is_cut)
    assert [one["name"] for one in trace["traceEvents"]] == ["a"]


def test_a_file_that_is_no_list_is_refused(tmp_path):
    """A file that is not a list of events is refused, and no trace is written."""
    for text in ("", "{}", '{"events": []}'):
        with pytest.raises(ValueError, match="it is not a list of events"):
            finished(tmp_path, text)
        assert not (tmp_path / "out.json.gz").exists()


def test_the_first_error_is_the_reason():
    """The reason is the first error that the library prints, without its place and time."""
    text = (
        "[2026-11-22 20:48:27] [INFO] [1] profiler.py: Start parsing\n"
        "|[2026-11-22 20:48:27] [ERROR] [2] profiler.py: Failed to export: no msprof: here\n"
        "[2026-11-22 20:48:27] [ERROR] [1] profiler.py: Task [TraceViewParser] run failed.\n"
    )

    assert first_error(text) == "Failed to export: no msprof: here"
    assert first_error("[INFO] all is well") == ""
