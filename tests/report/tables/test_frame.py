"""A run as Arrow tables and Parquet files: their rows, and input that cannot be read."""

import json
import sys
import time

import pyarrow.parquet as pq
import pytest

import rlprof
from rlprof_cli import main
from rlprof_engine import requests
from tests.cases import cases, refused
from tests.report.tables.folder import BEHIND, EPOCH, TRACE, S, make


@pytest.fixture(name="run")
def _run(tmp_path):
    return rlprof.read(make(tmp_path / "r1"))


def rows(table, **wanted):
    return [row for row in table.to_pylist() if wanted.items() <= row.items()]


def test_spans_are_those_of_the_reader(run):
    """The table has every span once, in the reader's order, on one clock for all hosts."""
    table = run.frame("spans")

    assert [(s.process, s.id, s.start_ns, s.end_ns, s.step) for s in run.spans()] == [
        (row["process"], row["id"], row["start_ns"], row["end_ns"], row["step"])
        for row in table.to_pylist()
    ]
    assert table.num_rows == 4 * 16 + 4 * 20
    first = rows(table, kind="step", step=1)
    assert BEHIND["node-b"] > 0
    assert [(row["rank"], row["start_ns"]) for row in first] == [
        (rank, EPOCH + 10 * S) for rank in range(4)
    ]


def test_a_span_without_a_step_gets_the_one_it_began_in(tmp_path):
    """A span without a step gets the step in which it began, or none."""
    when = {"before": 9, "first": 10, "third": 19, "after": 80}
    lines = [
        json.dumps({"kind": "span", "name": name, "t0": at * S, "t1": at * S + 1, "id": 90 + at})
        for name, at in when.items()
    ]
    folder = make(tmp_path / "r1", odd_lines=lines)

    table = rlprof.read(folder).frame("spans")

    steps = {row["name"]: row["step"] for row in table.to_pylist() if row["id"] > 98}
    assert steps == {"before": None, "first": 1, "third": 3, "after": None}


def test_a_request_of_an_engine_is_one_row_with_its_parts(tmp_path):
    """A request of an engine's trace is one row with its prefill, decode and end."""
    name = TRACE.replace(".pt.", "_requests.")
    folder = make(tmp_path / "r1", trace=name)
    times = {"queued_ts": 5.0, "scheduled_ts": 5.5, "first_token_ts": 6.0}
    lines = [{"id": "a", "left": 8.0, **times, "tokens": 9, "finish": "stop", "preemptions": 1},
             {"id": "b", "left": None, "queued_ts": 7.0}]  # fmt: skip
    capture = rlprof.Capture("r1", rlprof.Target("actor"), rlprof.Window(2, 3), "x", "h", 1)
    requests.write(tmp_path, requests.text_of(4.0, 9.0, lines))
    artifact = requests.trace_of(capture, tmp_path / requests.FILE, tmp_path)
    (tmp_path / artifact.path).replace(folder / name)

    first, second = rows(rlprof.read(folder).frame("requests"), source="engine")

    begin = first["start_ns"]
    parts = ("prefill_ns", "decode_ns", "end_ns")
    assert [(first[part] - begin) / S for part in parts] == [0.5, 1.0, 3.0]
    assert [first[key] for key in ("id", "tokens", "finish", "preemptions", "step")] == [
        "a", 9, "stop", 1, 2
    ]  # fmt: skip
    assert [(second["start_ns"] - begin) / S, (second["end_ns"] - begin) / S] == [2.0, 4.0]
    assert [second["id"], second["prefill_ns"], second["finish"]] == ["b", None, None]


def test_events_are_the_slices_of_the_traces(run):
    """The table has the traces' slices with exact times on the run's clock, and no marks."""
    table = run.frame("events")

    gemm = rows(table, name="gemm")[0]
    assert (table.num_rows, gemm["start_ns"]) == (4, EPOCH + 16 * S + 600_000_125)
    assert [gemm["dur_ns"], gemm["stream"], gemm["correlation"]] == [300_000_000, 7, 0]
    assert [gemm["file"], gemm["role"], gemm["step"]] == [TRACE, "actor", 2]


def test_unreadable_events_are_counted_and_the_others_kept(run):
    """Events without a valid name or time are counted and left out; the others are kept."""
    head = json.dumps({"epoch_ns": EPOCH})
    events = ['{"ph":"X","name":"a","ts":1.5,"dur":2}', '{"ph":"X","name":"b","ts":"soon"}',
              '{"ph":"X","name":"c","ts":1e300,"dur":1}', '{"ph":"X","name":3,"ts":1}',
              '{"ph":"X","name":"d","ts":3,"pid":"Spans","tid":' + "9" * 30 + "}"]  # fmt: skip
    (run.path / TRACE).write_text(f'{{"rlprof":{head},"traceEvents":[{",".join(events)}]}}')
    problems = []

    table = run.frame("events", problems)

    assert table["name"].to_pylist() == ["a", "d"]
    assert table["start_ns"].to_pylist() == [EPOCH + 1500, EPOCH + 3000]
    assert table["tid"].to_pylist() == [None, None]
    assert problems == [f"{TRACE}: 3 of its events could not be read"]


def test_steps_have_the_figures_of_the_logger(tmp_path):
    """The row of the last step has each of the session's figures with its value."""
    config = {"run_dir": str(tmp_path), "tool": "none", "roles": {"actor": {}}}
    with rlprof.open(config, role="actor") as prof:
        for _ in prof.steps(range(2)):
            with prof.phase("rollout"):
                for number in range(3):
                    with prof.trajectory(number) as path, path.request({"tokens": 9, "replica": 0}):
                        time.sleep(0.01)
        prof.scribe.flush()
        figures = prof.figures()

    row = rlprof.read(prof.run_dir).frame("steps").to_pylist()[-1]

    assert {"rlprof/phase/rollout_s", "rlprof/tokens_per_s", "rlprof/slots_used"} <= set(figures)
    for name, value in figures.items():
        found = row[name.removeprefix("rlprof/")]  # by the wall clock, whose rate is not exact
        assert found == pytest.approx(value, rel=1e-3, abs=1e-6), name


@pytest.mark.parametrize("kind", ["spans", "steps", "captures", "requests", "events"])
def test_a_run_without_processes_has_empty_tables(tmp_path, kind):
    """A run folder that has only its header gives tables without rows."""
    owner = {"attempt": 2, "opened_ns": 0}
    header = {"run_id": "e", "owner": owner, "config": {}, "expected": {}}
    (tmp_path / "run.json").write_text(json.dumps(header))

    table = rlprof.read(tmp_path).frame(kind)

    assert (table.num_rows, table.schema.metadata[b"rlprof_run"]) == (0, b"e/attempt_2")


@cases(
    "kind, module, said",
    ("span", "", "frame: there is no table 'span'; there are captures, events, requests, "),
    ("spans", "rlprof_report.tables", "frame: needs rlprof-report; install it with: pip "),
    ("spans", "pyarrow", "tables: need pyarrow; install it with: pip install pyarrow"),
)
def test_a_table_that_is_not_available_is_an_error(run, monkeypatch, kind, module, said):
    """An unknown table lists the known ones; a missing package is named with how to install it."""
    monkeypatch.setitem(sys.modules, module or "no module", None)

    assert refused(rlprof.RlprofError, run.frame, kind).startswith(said)


TABLES = ["captures", "events", "requests", "spans", "steps"]


def test_each_table_is_a_file(run, capsys):
    """Export writes each table as one Parquet file with zstd and the rows of its frame."""
    code = main(["export", str(run.path), "--to", "parquet"])

    out = run.path / "exports/parquet"
    assert code == 0
    assert capsys.readouterr().out.count("parquet: ") == 5
    assert sorted(file.name for file in out.iterdir()) == [f"{name}.parquet" for name in TABLES]
    for name in TABLES:
        table = pq.read_table(out / f"{name}.parquet")
        assert table.equals(run.frame(name))
        assert table.schema.metadata[b"rlprof_table"] == name.encode()
    codec = pq.ParquetFile(out / "spans.parquet").metadata.row_group(0).column(0).compression
    assert codec == "ZSTD"


def test_a_damaged_trace_is_logged_and_has_no_events(run, caplog):
    """A damaged trace is logged by name and adds no events; the export succeeds."""
    (run.path / TRACE).write_bytes(b"no trace")

    code = main(["export", str(run.path), "--to", "parquet"])

    assert code == 0
    assert [record.getMessage().startswith(TRACE) for record in caplog.records] == [True]
    assert pq.read_metadata(run.path / "exports/parquet/events.parquet").num_rows == 0
