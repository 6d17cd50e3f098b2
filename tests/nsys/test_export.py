"""Exports of the raw folder of a window, with a stand-in for nsys that exports a database."""

import gzip
import json
import sqlite3
import threading
from contextlib import closing

import pytest

from rlprof import CaptureError
from rlprof.types import Capture, Target, Window
from rlprof_nsys import _program
from rlprof_nsys._export import _HOLDS_ALL, _NO_NSYS, exported
from tests.cases import cases
from tests.nsys.database import Database

CAPTURE = Capture("run", Target("actor", 1, 2), Window(3, 4), "nsys", "host", 4711)
TRACE, REPORT = "trace.json.gz", "nsys-rep"


@pytest.fixture(name="report")
def _report(folder):
    file = folder / "report.nsys-rep"
    file.write_bytes(b"report")
    return file


@pytest.fixture(name="database")
def _database(nsys):
    """The database that nsys exports: two ranges of phases."""
    made = Database(nsys.home / "database")
    made.domain(1, "rlprof")
    made.range(1, 2, "update")
    made.range(3, 4, "update")
    return made.write()


@pytest.fixture(name="export")
def _export(nsys, database, folder, report, tmp_path):
    """Return a function that exports the folder: each artifact by its suffix."""

    def export(**notes):
        said = {"whole": True, "why": "", "nsys": nsys.path, **notes}
        (folder / "nsys.json").write_text(json.dumps(said))
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        made = exported(CAPTURE, folder, out)
        assert sorted(file.name for file in out.iterdir()) == sorted(one.path for one in made)
        return {one.path.removeprefix(f"{CAPTURE.stem}."): one for one in made}

    return export


def states(made):
    return {suffix: (one.status, one.note) for suffix, one in made.items()}


def test_a_report_becomes_a_trace_and_is_kept(export, tmp_path, report):
    """A report becomes a trace with the target of the capture, and is itself an artifact."""
    made = export(bytes=6, spans=2, version="2023.4.4.54")

    assert states(made) == {TRACE: ("whole", ""), REPORT: ("whole", "")}
    assert [one.kind for one in made.values()] == ["trace", "files"]
    with gzip.open(tmp_path / "out" / made[TRACE].path) as stream:
        header = json.load(stream)["rlprof"]
    said = [header[key] for key in ("run", "tool", "host", "pid", "nsys")]
    assert said == ["run", "nsys", "host", 4711, "2023.4.4.54"]
    assert (header["target"]["rank"], header["window"]["start_step"]) == (1, 3)
    assert (tmp_path / "out" / made[REPORT].path).read_bytes() == b"report"
    assert report.exists()


# failures.md: nsys-sqlite
@pytest.mark.parametrize("column", ["ANALYSIS_DETAILS SET duration", 'NVTX_EVENTS SET "end"'])
def test_a_report_with_a_damaged_table_is_kept_without_a_trace(export, database, column):
    """A wrong value in the report's SQLite yields no trace, and the report is partial."""
    with closing(sqlite3.connect(database)) as tables, tables:
        tables.execute(f"UPDATE {column} = 'x'")

    ((suffix, (status, note)),) = states(export()).items()

    assert (suffix, status) == (REPORT, "partial")
    assert note.startswith("no trace: the report's SQLite is damaged: ")


def test_without_nsys_the_report_is_kept(export, tmp_path, monkeypatch):
    """On a host without nsys there is no trace, and the report is partial with a note."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_program, "_USUAL", {})

    assert states(export(nsys="/elsewhere/nsys", bytes=6)) == {REPORT: ("partial", _NO_NSYS)}


@pytest.mark.slow
def test_an_nsys_that_hangs_is_ended(export, nsys, monkeypatch):
    """An nsys export that hangs is ended, and the report notes it."""
    monkeypatch.setattr(_program, "_LEAST_S", 0.5)
    nsys.goes_wrong(export="hang")

    late = "nsys export: did not finish in time: it said nothing"
    assert states(export()) == {REPORT: ("partial", late)}


@pytest.mark.slow
@cases(
    "notes, of_trace, of_report",
    ({"whole": False}, ("partial", "nothing shows that the report is whole"), None),
    ({"bytes": 7}, ("partial", "the report has 6 bytes; 7 were written"), None),
    ({"spans": 5}, ("partial", "3 of 5 phases have no range in the report"), ("whole", "")),
    # the self-test has found this, and it is `unsupported`
    ({"spans": 5, "self_test": "no ranges of phases"},
     ("whole", "3 of 5 phases have no range in the report"), ("whole", "")),
    ({"env": None}, ("whole", ""), ("whole", _HOLDS_ALL)),
)  # fmt: skip
def test_notes_say_what_a_report_lacks_and_holds(export, notes, of_trace, of_report):
    """Notes say that a report may not be whole, lacks ranges, or holds environments."""
    assert states(export(**notes)) == {TRACE: of_trace, REPORT: of_report or of_trace}


def test_no_report_is_one_error_with_the_reason(export, report):
    """An empty or a missing report is one error with the reason."""
    report.write_bytes(b"")
    with pytest.raises(CaptureError, match="nsys left an empty report"):
        export()

    report.unlink()
    with pytest.raises(CaptureError, match="the session had gone"):
        export(whole=False, why="the session had gone")


# failures.md: nsys-shared
@pytest.mark.slow
def test_the_report_of_a_killed_process_is_waited_for(export, report):
    """An export after a killed process waits until nsys has written the report."""
    report.unlink()
    threading.Timer(0.5, report.write_bytes, [b"report"]).start()

    made = export(whole=False, why="the process ended", wall=[1])

    assert made[REPORT].status == "partial"
    assert made[TRACE].events == 4
