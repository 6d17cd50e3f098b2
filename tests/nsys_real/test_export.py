"""Exports of real reports: all ranges are there, at the times of the program's clock."""

import gzip
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from rlprof.types import Capture, Target, Window
from rlprof_nsys._export import exported
from tests.nsys.database import SCHEMA
from tests.nsys_real.drive import launched, parted

pytestmark = pytest.mark.slow
RANGES = 300
CAPTURE = Capture("run", Target("actor"), Window(3, 4), "nsys", "host", 4711)
PROGRAM = f"""
import json, sys, threading, time
import nvtx

def ranges(name, pause_s):
    for number in range({RANGES}):
        times = [time.time_ns()]
        nvtx.push_range(name, domain="rlprof", payload=number)
        times.append(time.time_ns())
        time.sleep(pause_s)
        times.append(time.time_ns())
        nvtx.pop_range(domain="rlprof")
        times.append(time.time_ns())
        told.append([name, number, times])

print("ready", flush=True)
for line in sys.stdin:
    told = []
    nvtx.mark("begin", domain="other")
    whole = nvtx.start_range("whole", domain="rlprof")
    threads = [threading.Thread(target=ranges, args=(f"thread {{n}}", 0.001)) for n in range(2)]
    for thread in threads:
        thread.start()
    ranges("main", 0.003)
    for thread in threads:
        thread.join()
    nvtx.end_range(whole)
    with open(line.strip(), "w") as file:
        json.dump(told, file)
    print("done", flush=True)
"""


def recorded(nsys, home, count):
    (home / "program.py").write_text(PROGRAM)
    folders = [home / f"raw{number}" for number in range(count)]
    with launched(nsys, home / "program.py", home, "nvtx,osrt,cuda") as program:
        for folder in folders:
            folder.mkdir()
            program.record(folder, folder / "told.json")
            say(folder, nsys=nsys, spans=3 * RANGES)
    return folders


def say(folder, **said):
    (folder / "nsys.json").write_text(json.dumps({"whole": True, "why": "", **said}))


@pytest.fixture(scope="module", name="windows")
def _windows(nsys, tmp_path_factory):
    return recorded(nsys, tmp_path_factory.mktemp("windows"), 2)


@pytest.fixture(scope="module", name="traces")
def _traces(windows, tmp_path_factory):
    """Export both; return the artifacts, the trace, and the program's own times of each."""
    found = []
    for folder in windows:
        out = tmp_path_factory.mktemp("out")
        made = exported(CAPTURE, folder, out)
        with gzip.open(out / made[0].path) as stream:
            found.append((made, json.load(stream), json.loads((folder / "told.json").read_text())))
    return found


def test_all_ranges_are_at_the_times_of_the_programs_clock(traces):
    """The trace has every range, with both ends within its stated error of the program's clock."""
    for _, trace, told in traces:
        header = trace["rlprof"]
        events = [event for event in trace["traceEvents"] if event.get("cat") == "nvtx"]
        times = {(name, number): read for name, number, read in told}
        seen, off = [], []
        for event in [event for event in events if event["ph"] == "X"]:
            seen.append((event["name"], event["args"]["payload"]))
            read = times[seen[-1]]
            begin = header["epoch_ns"] + round(event["ts"] * 1000)
            end = begin + round(event["dur"] * 1000)
            off += [read[0] - begin, begin - read[1], read[2] - end, end - read[3]]
        assert sorted(seen) == sorted(times)
        assert len(seen) == 3 * RANGES
        assert max(off) <= header["error_ns"]
        others = [(event["ph"], event["name"]) for event in events if event["ph"] != "X"]
        assert sorted(others) == [("b", "whole"), ("e", "whole"), ("i", "begin")]


# failures.md: nsys-unusable
def test_raw_data_are_imported_where_debian_has_the_importer(nsys, tmp_path):
    """Without nsys' importer raw data are kept with a note; with it they become a trace."""
    program = parted(nsys, tmp_path)
    (raw,) = recorded(program, tmp_path, 1)
    assert [file.name for file in raw.glob("report*")] == ["report.qdstrm"]
    (made,) = exported(CAPTURE, raw, tmp_path)
    assert (made.format, made.status) == ("qdstrm", "partial")
    assert "link its folder host-linux-x64 next to target-linux-x64" in made.note
    home = Path(nsys).resolve().parents[4] / "lib/nsight-systems"
    (tmp_path / "usr/lib/nsight-systems").symlink_to(home)

    made = exported(CAPTURE, raw, tmp_path)

    assert [(one.status, one.note) for one in made[:2]] == [("whole", "")] * 2
    assert made[1].format == "nsys-rep"


def test_a_report_that_was_cut_is_partial(nsys, windows, tmp_path):
    """A report that was cut is kept as partial, with its size and nsys' own error."""
    whole = (windows[0] / "report.nsys-rep").read_bytes()
    assert len(whole) > 100_000
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "report.nsys-rep").write_bytes(whole[:1000])
    say(raw, nsys=nsys, bytes=len(whole))

    (made,) = exported(CAPTURE, raw, tmp_path)

    assert (made.kind, made.status) == ("files", "partial")
    assert f"the report has 1000 bytes; {len(whole)} were written; nsys export" in made.note


def test_tables_made_by_hand_are_those_of_the_program(nsys, windows, tmp_path):
    """The handmade tables of the tests have the columns of the real program's export."""
    file, report = tmp_path / "all.sqlite", str(windows[0] / "report.nsys-rep")
    argv = [nsys, "export", "--type=sqlite", "--lazy=false", f"--output={file}", report]
    subprocess.run(argv, capture_output=True, check=True)

    with closing(sqlite3.connect(file)) as tables:
        asked = "SELECT group_concat(name, ' ') FROM pragma_table_info(?)"
        columns = {table: tables.execute(asked, (table,)).fetchone()[0] for table in SCHEMA}

    assert columns == SCHEMA
