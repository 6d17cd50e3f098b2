"""What becomes of the raw folder of a window, with a stand-in for nsys that exports a database."""

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
    """What nsys exports of it: two ranges of phases."""
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


def test_a_report_becomes_a_trace_and_itself(export, tmp_path, report):
    """The trace says whose it is, the report is the recorded file."""
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
def test_a_table_with_what_belongs_not_there_is_handed_on(export, database, column):
    """SQLite takes anything in any column: no trace is made of it, and the report is kept."""
    with closing(sqlite3.connect(database)) as tables, tables:
        tables.execute(f"UPDATE {column} = 'x'")

    ((suffix, (status, note)),) = states(export()).items()

    assert (suffix, status) == (REPORT, "partial")
    assert note.startswith("no trace: the report's SQLite is damaged: ")


def test_without_nsys_the_report_is_handed_on(export, tmp_path, monkeypatch):
    """On a host without nsys there is no trace, which the report's note says; its raw data stay."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_program, "_USUAL", {})

    assert states(export(nsys="/elsewhere/nsys", bytes=6)) == {REPORT: ("partial", _NO_NSYS)}


@pytest.mark.slow
def test_an_nsys_that_hangs_is_ended(export, nsys, monkeypatch):
    """An export that does not end is cut off, and said so."""
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
    # the self-test has said so, and it is `unsupported`
    ({"spans": 5, "self_test": "no ranges of phases"},
     ("whole", "3 of 5 phases have no range in the report"), ("whole", "")),
    ({"env": None}, ("whole", ""), ("whole", _HOLDS_ALL)),
)  # fmt: skip
def test_what_is_to_be_said_of_a_report_is_said(export, notes, of_trace, of_report):
    """Notes say what is not whole, which phases lack a range, and that it has environments."""
    assert states(export(**notes)) == {TRACE: of_trace, REPORT: of_report or of_trace}


def test_no_report_is_one_error_with_the_reason(export, report):
    """A file of no bytes says that nsys was cut off; without any, `stop` has noted the reason."""
    report.write_bytes(b"")
    with pytest.raises(CaptureError, match="nsys left an empty report"):
        export()

    report.unlink()
    with pytest.raises(CaptureError, match="the session had gone"):
        export(whole=False, why="the session had gone")


# failures.md: nsys-shared
@pytest.mark.slow
def test_the_report_of_a_killed_process_is_waited_for(export, report):
    """Salvage may come before nsys, which was told to end with the program, has written it."""
    report.unlink()
    threading.Timer(0.5, report.write_bytes, [b"report"]).start()

    made = export(whole=False, why="the process ended", wall=[1])

    assert made[REPORT].status == "partial"
    assert made[TRACE].events == 4
