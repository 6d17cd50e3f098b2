"""What becomes of real reports: all ranges that were made, where the program's clock puts them."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from rlprof.types import Capture, Target, Window
from rlprof_nsys._export import exported
from tests.nsys.database import SCHEMA
from tests.nsys_real.drive import launched

RANGES = 300
CAPTURE = Capture("run", Target("actor"), Window(3, 4), "nsys", "host", 4711)
PROGRAM = f"""
import sys
import threading
import time
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
        import json
        json.dump(told, file)
    print("done", flush=True)
"""


@pytest.fixture(scope="module", name="windows")
def _windows(nsys, tmp_path_factory):
    """Record two windows of a program; return what is in each folder, and what the program told."""
    home = tmp_path_factory.mktemp("windows")
    (home / "program.py").write_text(PROGRAM)
    folders = []
    with launched(nsys, home / "program.py", home, trace="nvtx,osrt,cuda") as program:
        for number in range(2):
            folder = home / f"raw{number}"
            folder.mkdir()
            program.start(folder / "report")
            program.tell(str(home / f"told{number}.json"))
            program.stop()
            told = json.loads((home / f"told{number}.json").read_text())
            notes = {"nsys": nsys, "whole": True, "why": "", "spans": len(told)}
            (folder / "nsys.json").write_text(json.dumps(notes))
            folders.append((folder, told))
    return folders


@pytest.fixture(scope="module", name="traces")
def _traces(windows, tmp_path_factory):
    """Export both; return what was made, each trace read, and what the program told."""
    found = []
    for folder, told in windows:
        out = tmp_path_factory.mktemp("out")
        made = exported(CAPTURE, folder, out)
        with gzip.open(out / made[0].path) as stream:
            found.append((made, json.load(stream), told, out))
    return found


def test_each_report_becomes_a_whole_trace(traces):
    """The trace and the report are there, and whole."""
    suffixes = ["trace.json.gz", "nsys-rep"]
    for made, _, _, _ in traces:
        assert [one.path.removeprefix(f"{CAPTURE.stem}.") for one in made] == suffixes
        assert [(one.status, one.note) for one in made] == [("whole", "")] * 2


def test_all_ranges_are_there_with_their_payload(traces):
    """As many ranges as were made, each with its name and payload, none of another window's."""
    for _, trace, told, _ in traces:
        made = sorted((name, number) for name, number, _ in told)
        seen = [
            (event["name"], event["args"]["payload"])
            for event in trace["traceEvents"]
            if event.get("cat") == "nvtx" and event["ph"] == "X"
        ]
        assert sorted(seen) == made
        assert len(made) == 3 * RANGES
        others = [
            (event["ph"], event["name"])
            for event in trace["traceEvents"]
            if event.get("cat") == "nvtx" and event["ph"] != "X"
        ]
        assert sorted(others) == [("b", "whole"), ("e", "whole"), ("i", "begin")]


def test_ranges_lie_where_the_clock_of_the_program_puts_them(traces):
    """Both ends of each range lie as near the program's own readings as the trace says."""
    for _, trace, told, _ in traces:
        header = trace["rlprof"]
        times = {(name, number): read for name, number, read in told}
        off = []
        for event in trace["traceEvents"]:
            if event.get("cat") != "nvtx" or event["ph"] != "X":
                continue
            read = times[event["name"], event["args"]["payload"]]
            begin = header["epoch_ns"] + round(event["ts"] * 1000)
            end = begin + round(event["dur"] * 1000)
            off += [_outside(begin, *read[:2]), _outside(end, *read[2:])]
        assert len(off) == 6 * RANGES
        assert max(off) <= header["error_ns"]


def test_what_a_killed_agent_leaves_is_imported(nsys, tmp_path, windows):
    """Raw data that nsys could not import itself become a whole trace here."""
    real = Path(nsys).resolve().parent
    parted = tmp_path / "parted/target-linux-x64"
    parted.mkdir(parents=True)
    for file in real.iterdir():
        if file.name == "nsys":  # it looks for its importer beside where it really is
            shutil.copy(file, parted)
        else:
            (parted / file.name).symlink_to(file)
    raw = tmp_path / "raw"
    raw.mkdir()
    with launched(str(parted / "nsys"), windows[0][0].parent / "program.py", tmp_path) as program:
        program.start(raw / "report")
        program.tell(str(tmp_path / "told.json"))
        program.stop()
    assert [file.name for file in raw.iterdir()] == ["report.qdstrm"]
    (raw / "nsys.json").write_text(json.dumps({"nsys": nsys, "whole": True, "spans": 3 * RANGES}))
    out = tmp_path / "out"
    out.mkdir()
    made = exported(CAPTURE, raw, out)
    assert [(one.status, one.note) for one in made[:2]] == [("whole", "")] * 2
    assert made[1].format == "nsys-rep"


def test_a_report_that_was_cut_is_said_to_be(nsys, windows, tmp_path):
    """A report that was cut is handed on, with what nsys says of it."""
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    out.mkdir()
    whole = (windows[0][0] / "report.nsys-rep").read_bytes()
    assert len(whole) > 100_000
    (raw / "report.nsys-rep").write_bytes(whole[:1000])
    (raw / "nsys.json").write_text(json.dumps({"nsys": nsys, "whole": True, "bytes": len(whole)}))
    (made,) = exported(CAPTURE, raw, out)
    assert (made.kind, made.status) == ("files", "partial")
    assert f"the report has 1000 bytes; {len(whole)} were written; nsys export" in made.note


def test_tables_made_by_hand_are_those_of_the_program(nsys, windows, tmp_path):
    """The tables that the tests make by hand have the columns the program gives them."""
    found = _all_tables(nsys, windows[0][0] / "report.nsys-rep", tmp_path / "all.sqlite")
    with closing(sqlite3.connect(found)) as tables:
        columns = {
            table: " ".join(
                name
                for (name,) in tables.execute("SELECT name FROM pragma_table_info(?)", (table,))
            )
            for table in SCHEMA
        }
    assert columns == SCHEMA


def _all_tables(nsys, report, file):
    """Export *report* with every table the program knows, those without rows too."""
    argv = [nsys, "export", "--type=sqlite", "--lazy=false", f"--output={file}", str(report)]
    subprocess.run(argv, capture_output=True, check=True)
    return file


def _outside(at, begin, end):
    return max(begin - at, at - end, 0)
