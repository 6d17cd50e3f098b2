"""Any name of a phase or span is safe in folders, ranges, traces and timelines."""

import json
import re
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof.rundir import as_line
from rlprof.types import Capture, Target, Window, safe_name
from rlprof_traces import encode
from rlprof_traces.marks import range_name

pytestmark = pytest.mark.slow

PROPERTY = settings(max_examples=250, deadline=None)

HOSTILE = (
    "", " ", ".", "..", "-", "/", "/etc/passwd", "../../x", "a\\b", "C:\\x", "~", "$(id)", "a\0b",
    "\n", "a\nb", "\r\n", "\x1b[2J", "\x7f", "\u2028", "\ud800", "a\udcffb", "é", "e\u0301",
    "日本語", "😀", '"', '"}, {"ph": "X", "ts": 1, "name": "', '", "pid": 3, "x": "', "  },\n  {\n",
    '"traceEvents": [', '", "baseTimeNanoseconds": 5', "\\", "\\u0000", "\\ud800", "NaN", "{",
    "%s", "{0}", "a" * 79, "a" * 80, "a" * 81, "a" * 300, "é" * 100, "/" * 300, "step", "step.1",
    "a.1", "CON", ".hidden", "-rf", "rlprof.clock", "rlprof.warmup", "ProfilerStep#1",
    "name with spaces", "<b>", "&amp;",
)  # fmt: skip

FRAGMENTS = st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join)
NAME = st.text(st.characters(exclude_categories=[]), max_size=100) | FRAGMENTS


@PROPERTY
@given(phase=st.none() | NAME, role=NAME, occurrence=st.integers(0, 3), step=st.integers(0, 10**18))
def test_every_folder_stays_below_the_run(phase, role, occurrence, step):
    """No name leads out of the run folder, is hidden, or is too long for a file system."""
    window, target = Window(step, step + 1, phase, occurrence), Target(role, 3, 8)
    capture = Capture("run", target, window, "torch", "host", 7)

    for path in (PurePosixPath(window.folder) / target.folder, PurePosixPath(capture.stem)):
        assert all(re.fullmatch(r"[\w-][\w.-]{0,254}", part, re.ASCII) for part in path.parts), path
    assert len(PurePosixPath(window.folder).parts) == 2
    assert len(PurePosixPath(target.folder).parts) == 1


@PROPERTY
@given(NAME, NAME, st.integers(0, 11), st.integers(0, 11))
def test_different_names_have_different_folders(one, other, first, second):
    """Different names and occurrences have different folders; a second `a` is not `a.1`."""
    names = {one, other, f"{one}.{first}"}
    windows = {Window(2, 3, name, number) for name in names for number in (0, first, second)}

    assert len(names) == len({*map(safe_name, names)}) == len({Target(a).folder for a in names})
    assert len(windows) == len({window.folder for window in windows})


@PROPERTY
@given(NAME)
def test_a_range_name_is_safe_for_kineto(name):
    """A name for Kineto is short, printable ASCII without quotes or backslashes."""
    made = range_name(name)

    assert re.fullmatch(r"[ -~]{1,200}", made)
    assert not set(made) & {'"', "\\"}
    assert made == made.strip()
    assert made == range_name(made)


@PROPERTY
@given(NAME, NAME)
def test_manifest_and_timeline_hold_any_name(name, value):
    """A line of the manifest and an event of the timeline are strict JSON with any name."""
    record = {"name": name, "attributes": {name: value}}

    line, event = as_line(record), encode(record)

    for text in (line, event):
        read = json.loads(text.decode("utf-8"))
        json.dumps(read, ensure_ascii=False).encode("utf-8")  # no half surrogate pair
    assert b"\\" not in event  # Perfetto would show it, or worse
    assert line.count(b"\n") == 1
