"""The law of traces: each fault of a trace is reported with a cure."""

import gzip
import json
import time

import attrs
import pytest

from rlprof.types import Capture, Target
from rlprof_testing import _trace
from rlprof_testing._drive import FIRST, Recorded
from tests.cases import cases, refused
from tests.kit.tools import header

NOW = time.time_ns()
EVENT = {"ph": "X", "name": "a", "ts": 10.5, "dur": 2, "pid": 1, "tid": 1}


@pytest.fixture(name="recorded")
def _recorded(tmp_path):
    capture = Capture("a-run", Target("actor", coordinates={"tp": 0}), FIRST, "mine", "host", 7)
    return Recorded(tmp_path, capture, began_ns=NOW, ended_ns=NOW + 10**9)


@cases(
    "kind, coordinates, is_right",
    ("engine", {"tp": 0, "pp": 1}, True),
    ("engine", {"pp": 1}, False),
    ("tool", {"tp": 0, "pp": 1}, False),
)
def test_a_trace_of_an_engine_may_name_one_of_its_processes(recorded, kind, coordinates, is_right):
    """A trace of an engine may add coordinates and a worker to the capture's; a tool's may not."""
    recorded = attrs.evolve(recorded, capture=attrs.evolve(recorded.capture, kind=kind))
    target = attrs.asdict(recorded.capture.target) | {"coordinates": coordinates, "worker": 3}
    about = header(recorded.capture, NOW) | {"target": target}
    trace = {"rlprof": about, "traceEvents": [EVENT]}

    if is_right:
        assert trace == check(recorded, trace)
    else:
        assert "begin it with" in refused(AssertionError, check, recorded, trace)


def check(recorded, content):
    file = recorded.folder / "a.trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps(content).encode()))
    return _trace.check_trace(file, recorded)


@cases(
    "changes, event, told",
    ({"run": "another"}, {}, "begin it with"),
    ({"epoch_ns": 1.5}, {}, "give the wall clock of ts 0 in ns, an int"),
    ({"epoch_ns": NOW // 1000}, {}, "so it is outside of it"),
    ({"error_ns": -1}, {}, "give an int in ns, or null if unknown"),
    ({}, {"ts": NOW / 1000}, "so it is outside of it"),
    ({}, {"dur": -1}, "ends before it begins"),
)
def test_a_wrong_header_or_event_is_reported(recorded, changes, event, told):
    """A wrong run, clock or error bound, or an event outside the window, is reported."""
    about = header(recorded.capture, NOW) | changes
    with pytest.raises(AssertionError, match=told):
        check(recorded, {"rlprof": about, "traceEvents": [EVENT | event]})


@cases(
    "content, told",
    (b'{"traceEvents": []}', "write the `rlprof` object first"),
    (b'{"rlprof": NaN}', "NaN is not JSON"),
    (None, r"write it with gzip\.open"),
)
def test_a_file_that_is_no_trace_is_reported(recorded, content, told):
    """A file without gzip, strict JSON or the leading `rlprof` object is reported."""
    file = recorded.folder / "a.json"
    file.write_bytes(b"{}" if content is None else gzip.compress(content))

    with pytest.raises(AssertionError, match=told):
        _trace.check_trace(file, recorded)
