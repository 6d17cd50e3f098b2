"""What becomes of the raw folder of a window, with a stand-in for nsys that writes what it is told.

The real program is in `tests/nsys_real`.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import threading
from contextlib import closing

import pytest

from rlprof import CaptureError
from rlprof.types import Capture, Target, Window
from rlprof_nsys import _convert, _program
from rlprof_nsys._export import _NO_NSYS, exported
from tests.nsys.database import Database

CAPTURE = Capture("run", Target("actor", 1, 2), Window(3, 4), "nsys", "host", 4711)
STEM = CAPTURE.stem
STAND_IN = """#!{python}
import os, shutil, sys, time
words = dict(word.split("=", 1) for word in sys.argv if "=" in word)
if sys.argv[1] == "export":
    if open(sys.argv[-1], "rb").read(4) == b"hang":
        time.sleep(60)
    shutil.copy({database!r}, words["--output"])
"""


@pytest.fixture(name="raw")
def _raw(tmp_path):
    """Make the folder a window leaves, with a report of two ranges."""
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "report.nsys-rep").write_bytes(b"report")
    return folder


@pytest.fixture(name="database")
def _database(tmp_path):
    made = Database(tmp_path / "made.sqlite")
    made.domain(1, "rlprof")
    made.range(1, 2, "update")
    made.range(3, 4, "update")
    return made.write()


@pytest.fixture(name="nsys")
def _nsys(tmp_path, database):
    """Install the stand-in."""
    file = tmp_path / "bin/nsys"
    file.parent.mkdir()
    file.write_text(STAND_IN.format(python=sys.executable, database=str(database)))
    file.chmod(0o755)
    return file


@pytest.fixture(name="nowhere")
def _nowhere(monkeypatch, tmp_path):
    """Take every nsys away."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_program, "_USUAL", ())


@pytest.fixture(name="export")
def _export(raw, tmp_path):
    """Return a function that exports the folder: each artifact by its suffix."""

    def export(**notes):
        if notes:
            whole = {"whole": True, "why": "", **notes}
            (raw / "nsys.json").write_text(json.dumps(whole))
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        made = {one.path.removeprefix(f"{STEM}."): one for one in exported(CAPTURE, raw, out)}
        assert sorted(file.name for file in out.iterdir()) == sorted(
            one.path for one in made.values()
        )
        return made

    return export


def states(made):
    """Return what is said of each artifact."""
    return {suffix: (one.kind, one.status, one.note) for suffix, one in made.items()}


def test_a_report_becomes_a_trace_and_itself(export, nsys, tmp_path, raw):
    """The trace says whose it is, the report is the recorded file."""
    made = export(nsys=str(nsys), bytes=6, spans=2, version="2023.4.4.54")
    assert states(made) == {
        "trace.json.gz": ("trace", "whole", ""),
        "nsys-rep": ("files", "whole", ""),
    }
    with gzip.open(tmp_path / "out" / made["trace.json.gz"].path) as stream:
        header = json.load(stream)["rlprof"]
    said = {key: header[key] for key in ("run", "tool", "host", "pid", "nsys")}
    assert said == {
        "run": "run", "tool": "nsys", "host": "host", "pid": 4711, "nsys": "2023.4.4.54",
    }  # fmt: skip
    assert header["target"]["rank"] == 1
    assert header["window"]["start_step"] == 3
    assert (tmp_path / "out" / made["nsys-rep"].path).read_bytes() == b"report"
    assert (raw / "report.nsys-rep").exists()


def test_without_nsys_the_report_is_handed_on(export, nowhere):
    """On a host without nsys there is no trace, which the report's note says; its raw data stay."""
    assert _NO_NSYS.startswith("no trace: there is no nsys on this host")
    assert states(export(nsys="/elsewhere/nsys", bytes=6)) == {
        "nsys-rep": (
            "files",
            "partial",
            _NO_NSYS,
        ),
    }


def test_without_nsys_its_sqlite_will_do(export, nowhere, raw, database):
    """Where the SQLite is beside the report already, a trace needs no nsys."""
    (raw / "report.sqlite").write_bytes(database.read_bytes())
    made = export(nsys="/elsewhere/nsys")
    assert states(made) == {
        "trace.json.gz": ("trace", "whole", ""),
        "nsys-rep": ("files", "whole", ""),
    }


# failures.md: nsys-sqlite
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ANALYSIS_DETAILS SET duration = 'x'",
        "UPDATE NVTX_EVENTS SET \"end\" = 'x'",
    ],
)
def test_a_table_with_what_belongs_not_there_is_handed_on(export, nowhere, raw, database, damage):
    """SQLite takes anything in any column: no trace is made of it, and the report is kept."""
    with closing(sqlite3.connect(database)) as tables, tables:
        tables.execute(damage)
    (raw / "report.sqlite").write_bytes(database.read_bytes())

    (made,) = export(nsys="/nowhere").values()

    assert (made.kind, made.format, made.status) == ("files", "nsys-rep", "partial")
    assert made.note.startswith("no trace: the report's SQLite is damaged: ")


@pytest.mark.slow
def test_an_nsys_that_hangs_is_ended(export, nsys, raw, monkeypatch):
    """An export that does not end is cut off, and said so."""
    monkeypatch.setattr(_convert, "_LEAST_S", 0.5)
    (raw / "report.nsys-rep").write_bytes(b"hang")
    assert states(export(nsys=str(nsys))) == {
        "nsys-rep": (
            "files", "partial", "nsys export: did not finish in time: it said nothing",
        ),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notes", "why"),
    [
        ({"whole": False, "why": ""}, "nothing shows that the report is whole"),
        ({"bytes": 7}, "the report has 6 bytes; 7 were written"),
    ],
)
def test_a_report_nobody_calls_whole_is_partial(export, nsys, notes, why):
    """Unless `stop` has said that this report is whole, all that is made of it is partial."""
    made = export(nsys=str(nsys), **notes)
    assert (made["trace.json.gz"].status, made["trace.json.gz"].note) == ("partial", why)
    assert (made["nsys-rep"].status, made["nsys-rep"].note) == ("partial", why)


@pytest.mark.slow
def test_a_report_that_holds_environments_says_so(export, nsys):
    """So that nobody passes it on unseen; the trace, which has none of it, says nothing."""
    told = export(nsys=str(nsys), env=None)

    assert {one.status for one in told.values()} == {"whole"}
    assert {suffix: one.note for suffix, one in told.items() if one.note} == {
        "nsys-rep": "the report holds environment variables of all processes that nsys could read, "
        "in plain text; check it before you share it"
    }


@pytest.mark.slow
def test_phases_that_are_no_ranges_are_counted(export, nsys):
    """Fewer ranges than phases were begun is said."""
    made = export(nsys=str(nsys), spans=5)
    said = (made["trace.json.gz"].status, made["trace.json.gz"].note)
    assert said == ("partial", "3 of 5 phases have no range in the report")


def test_no_report_is_one_error_with_the_reason(export, raw, nsys):
    """A file of no bytes says that nsys was cut off; without any, `stop` has noted the reason."""
    (raw / "report.nsys-rep").write_bytes(b"")
    with pytest.raises(CaptureError, match="nsys left an empty report"):
        export(nsys=str(nsys))

    (raw / "report.nsys-rep").unlink()
    with pytest.raises(CaptureError, match="the session had gone"):
        export(nsys=str(nsys), whole=False, why="the session had gone")


# failures.md: nsys-shared
@pytest.mark.slow
def test_the_report_of_a_killed_process_is_waited_for(export, raw, nsys):
    """Salvage may come before nsys, which was told to end with the program, has written it."""
    (raw / "report.nsys-rep").unlink()
    threading.Timer(0.5, (raw / "report.nsys-rep").write_bytes, [b"report"]).start()

    made = export(nsys=str(nsys), whole=False, why="the process ended", wall=[[1, 1]])

    assert made["nsys-rep"].status == "partial"
    assert made["trace.json.gz"].events == 4
