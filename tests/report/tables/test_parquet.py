"""`rlprof export RUN --to parquet`: every table as a file."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import rlprof
from rlprof_cli import main
from tests.report.tables.folder import TRACE, make

TABLES = ["captures", "events", "requests", "spans", "steps"]


def test_each_table_is_a_file(tmp_path, capsys):
    """The files have the rows of the frames, compressed with zstd, and nothing else lies there."""
    folder = make(tmp_path / "r1")

    code = main(["export", str(folder), "--to", "parquet"])

    out = folder / "exports/parquet"
    assert code == 0
    assert capsys.readouterr().out.count("parquet: ") == 5
    assert sorted(file.name for file in out.iterdir()) == [f"{name}.parquet" for name in TABLES]
    for name in TABLES:
        table = pq.read_table(out / f"{name}.parquet")
        assert table.equals(rlprof.read(folder).frame(name))
        assert table.schema.metadata[b"rlprof_table"] == name.encode()
    codec = pq.ParquetFile(out / "spans.parquet").metadata.row_group(0).column(0).compression
    assert codec == "ZSTD"


def test_what_cannot_be_read_is_said(tmp_path, caplog):
    """A damaged trace costs its events, and its name is told."""
    folder = make(tmp_path / "r1")
    (folder / TRACE).write_bytes(b"no trace")

    code = main(["export", str(folder), "--to", "parquet"])

    assert code == 0
    assert [record.getMessage().startswith(TRACE) for record in caplog.records] == [True]
    assert pq.read_metadata(folder / "exports/parquet/events.parquet").num_rows == 0


@pytest.mark.slow
def test_a_real_window_of_torch_becomes_rows(tmp_path):
    """The operators of a recorded phase lie inside it, on the run's clock."""
    import torch

    config = {"run_dir": str(tmp_path), "tool": "torch", "steps": [1], "roles": {"actor": {}}}
    with rlprof.open(config) as prof:
        prof.step(1)
        with prof.phase("update_actor"):
            torch.ones(64, 64) @ torch.ones(64, 64)

    run = rlprof.read(prof.run_dir)

    (phase,) = [row for row in run.frame("spans").to_pylist() if row["kind"] == "phase"]
    (mm,) = [row for row in run.frame("events").to_pylist() if row["name"] == "aten::mm"]
    assert phase["start_ns"] <= mm["start_ns"]
    assert mm["start_ns"] + mm["dur_ns"] <= phase["end_ns"]
    assert mm["category"] == "cpu_op"
