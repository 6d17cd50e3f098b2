"""The trace that is made of a report's SQLite."""

import gzip
import json
import sqlite3
from contextlib import closing

import pytest

from rlprof_nsys._sqlite import UnreadableError
from rlprof_nsys._trace import write_trace
from tests.nsys import database as made_of
from tests.nsys.database import API, KERNEL, NVTX, OSRT, OTHER_PID, PID, Database, global_tid
from tests.perfetto_engine import query_all, summary


@pytest.fixture(name="database")
def _database(tmp_path):
    made = Database(tmp_path / "report.sqlite")
    made.add("PROCESSES", globalPid=global_tid(0), pid=PID, name="/usr/bin/python3")
    made.domain(1, "rlprof")
    return made


@pytest.fixture(name="read")
def _read(database, tmp_path):
    """Return a function that writes the trace and reads it as strict JSON."""

    def read():
        file = tmp_path / "report.trace.json.gz"
        written = write_trace(database.write(), file, {"run": "r"})
        text = gzip.decompress(file.read_bytes()).decode("ascii")
        found = json.loads(text, parse_constant=pytest.fail)
        assert (written.events, written.text_size) == (len(found["traceEvents"]), len(text))
        return found

    return read


def shown(found, cat):
    return [
        (event["ph"], event["name"], event["ts"], event.get("dur"), event.get("args"))
        for event in found["traceEvents"]
        if event.get("cat") == cat
    ]


def tracks(found):
    """Return the names of the tracks: of the process, then of the thread."""
    names = {
        (event["name"], event["pid"], event["tid"]): event["args"]["name"]
        for event in found["traceEvents"]
        if event["ph"] == "M"
    }
    return {
        (pid, tid): (names["process_name", pid, 0], name)
        for (what, pid, tid), name in names.items()
        if what == "thread_name"
    }


def track_of(found, name):
    (event,) = (event for event in found["traceEvents"] if event["name"] == name)
    return tracks(found)[event["pid"], event["tid"]]


def test_ranges_are_slices_with_domain_payload_and_category(read, database):
    """A range is a slice, exact to the nanosecond, with its domain, category and payload."""
    database.add(
        NVTX, start=0, eventType=33, category=3, text="kind", globalTid=global_tid(1), domainId=1
    )
    database.range(1_000, 4_001_007, "update", int64Value=12, category=3)
    database.range(2_000, 2_500, "inner", category=9)
    database.range(3_000, 3_000, "real", doubleValue=0.5)
    assert shown(read(), "nvtx") == [
        ("X", "update", 1.0, 4000.007, {"domain": "rlprof", "category": "kind", "payload": 12}),
        ("X", "inner", 2.0, 0.5, {"domain": "rlprof", "category": "9"}),
        ("X", "real", 3.0, 0.0, {"domain": "rlprof", "payload": 0.5}),
    ]


def test_ranges_are_cut_to_the_session(read, database):
    """Ranges are cut to the session and marked; those that ended before it are left out."""
    database.range(1_000, None, "cut")
    database.range(-9_000, -5_000, "before")
    database.range(-1, None, "mark before", kind=34)
    database.range(-3_000, 2_000, "under way", int64Value=4)
    database.call(OSRT, -6_000_000_000, -6_000_000_000, "profiling started")
    database.call(OSRT, -5_000, 7_000, "read")
    found = read()
    args = {"domain": "rlprof", "payload": 4, "began_us": -3.0}
    assert shown(found, "nvtx") == [
        ("X", "under way", 0.0, 2.0, args),
        ("X", "cut", 1.0, 999_999.0, {"domain": "rlprof", "unfinished": True}),
    ]
    assert shown(found, "os_runtime") == [("X", "read", 0.0, 7.0, {"began_us": -5.0})]


def test_each_domain_of_a_thread_has_a_track(read, database):
    """The domains and the calls of a thread, and other processes, have tracks with names."""
    database.domain(2, "model")
    database.domain(1, "elsewhere", pid=OTHER_PID)
    database.add("ThreadNames", nameId=database.text("main"), globalTid=global_tid(PID))
    database.range(1, 9, "ours")
    database.range(2, 12, "theirs", domain=2)
    database.range(3, 4, "plain", domain=0, tid=4800)
    database.range(3, 4, "far", tid=4712, pid=OTHER_PID)
    database.call(OSRT, 2, 11, "read")
    found = read()
    assert {name: track_of(found, name) for name in ("ours", "theirs", "plain", "far", "read")} == {
        "ours": ("python3", f"main {PID} · NVTX rlprof"),
        "theirs": ("python3", f"main {PID} · NVTX model"),
        "plain": ("python3", "thread 4800 · NVTX"),
        "far": (f"process {OTHER_PID}", f"thread {OTHER_PID} · NVTX elsewhere"),
        "read": ("python3", f"main {PID} · OS runtime"),
    }
    assert len(set(tracks(found))) == len(tracks(found)) == 5


def test_device_work_lies_on_its_stream_with_an_arrow_from_its_call(read, database):
    """Kernels, copies, fills and waits lie on their stream, with an arrow from their call."""
    database.call(API, 100, 300, "cudaLaunchKernel_v7000", correlationId=5)
    database.call(API, 400, 600, "cudaMemcpyAsync_v3020", correlationId=6, returnValue=2)
    other = global_tid(OTHER_PID, OTHER_PID)  # two processes may count the same
    database.call(API, 700, 800, "theirs", correlationId=77, globalTid=other)
    name = database.text("void gemm<float, 4>(float const*)")
    size = {"gridX": 8, "gridY": 2, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
    database.device(
        KERNEL, 1_000, 3_500, 5, demangledName=name, shortName=database.text("gemm"),
        registersPerThread=32, staticSharedMemory=0, dynamicSharedMemory=1024, **size,
    )  # fmt: skip
    database.device(made_of.MEMCPY, 4_000, 4_100, 6, bytes=4096, copyKind=1, srcKind=0, dstKind=2)
    database.device(made_of.MEMSET, 4_200, 4_210, 77, bytes=64, value=0, memKind=2, stream=8)
    database.device(made_of.SYNC, 300, 4_300, 5, syncType=3, eventId=0)
    found = read()
    where = {"device": 0, "context": 1, "stream": 7}
    assert shown(found, "cuda_api") == [
        ("X", "cudaLaunchKernel_v7000", 0.1, 0.2, {"correlation": 5}),
        ("X", "cudaMemcpyAsync_v3020", 0.4, 0.2, {"correlation": 6, "returned": 2}),
        ("X", "theirs", 0.7, 0.1, {"correlation": 77}),
    ]
    kernel = {**size, "registersPerThread": 32, "staticSharedMemory": 0,
              "dynamicSharedMemory": 1024, **where, "correlation": 5}  # fmt: skip
    assert shown(found, "kernel") == [("X", "void gemm<float, 4>(float const*)", 1.0, 2.5, kernel)]
    copy = {"copyKind": "Host-to-Device", "bytes": 4096, "srcKind": "Pageable"}
    assert shown(found, "gpu_memcpy") == [
        ("X", "Memcpy Host-to-Device", 4.0, 0.1,
         {**copy, "dstKind": "Device", **where, "correlation": 6}),
    ]  # fmt: skip
    fill = {"bytes": 64, "value": 0, "memKind": "Device", **where, "stream": 8, "correlation": 77}
    assert shown(found, "gpu_memset") == [("X", "Memset Device", 4.2, 0.01, fill)]
    wait = {"syncType": "Stream sync", "eventId": 0, **where, "correlation": 5}
    assert shown(found, "cuda_sync") == [("X", "Stream sync", 0.3, 4.0, wait)]
    stream = f"GPU 0 of process {PID}", "stream 7 of context 1"
    assert track_of(found, "Memcpy Host-to-Device") == stream
    assert track_of(found, "Stream sync") == (stream[0], f"{stream[1]} · waits")
    arrows = [
        (event["ph"], event["id"], event["ts"], tracks(found)[event["pid"], event["tid"]][1])
        for event in found["traceEvents"]
        if event.get("cat") == "cuda_flow"
    ]
    api = f"thread {PID} · CUDA API"
    assert arrows == [
        ("s", 1, 0.1, api), ("f", 1, 1.0, stream[1]),
        ("s", 2, 0.4, api), ("f", 2, 4.0, stream[1]),
        ("s", 3, 0.1, api), ("f", 3, 0.3, f"{stream[1]} · waits"),
    ]  # fmt: skip


def test_columns_and_tables_of_other_releases_may_be_missing(tmp_path):
    """A database without some tables and columns gives a trace of the others."""
    file = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(file)) as tables:
        tables.executescript(
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME AS SELECT 1000 AS utcEpochNs;"
            "CREATE TABLE NVTX_EVENTS AS SELECT 1 AS start, 2 AS end, 59 AS eventType, "
            "'old' AS text, 5 AS globalTid;"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 3 AS start, 4 AS end, 0 AS deviceId;"
        )
    write_trace(file, tmp_path / "trace.gz", {})
    with gzip.open(tmp_path / "trace.gz") as stream:
        found = json.load(stream)
    assert found["rlprof"]["epoch_ns"] == 1000
    names = [event["name"] for event in found["traceEvents"] if event["ph"] == "X"]
    assert names == ["old", "unnamed"]


def test_a_report_that_does_not_say_when_it_began_makes_no_trace(tmp_path):
    """A report without the start time of its session is an error, and no file is written."""
    source = Database(tmp_path / "report.sqlite", epoch_ns=None).write()
    with pytest.raises(UnreadableError, match="does not say when its session began"):
        write_trace(source, tmp_path / "trace.gz", {})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.sqlite"]


@pytest.mark.slow
def test_perfetto_sees_what_was_recorded(database, tmp_path):
    """Perfetto finds every slice, flow and process of the trace, and no error."""
    for at in range(100):
        begin = at * 10_000
        database.range(begin, begin + 9_000, "outer", int64Value=at)
        database.range(begin + 100, begin + 8_000, "inner")
        database.call(API, begin + 200, begin + 400, "launch", correlationId=at + 1)
        name = database.text("kernel")
        database.device(KERNEL, begin + 1_000, begin + 3_000, at + 1, demangledName=name)
    file = tmp_path / "trace.json.gz"
    write_trace(database.write(), file, {})
    found = summary(file)
    assert (found.slices, found.flows, found.errors) == (400, 100, {})
    assert found.process_names == [f"GPU 0 of process {PID}", "python3"]
    nested = "select count(*) as n from slice where name = 'inner' and depth = 1"
    first = "select min(dur) as shortest from slice where name = 'kernel'"
    rows = query_all(file, nested=nested, first=first)
    assert rows == {"nested": [{"n": 100}], "first": [{"shortest": 2000}]}
