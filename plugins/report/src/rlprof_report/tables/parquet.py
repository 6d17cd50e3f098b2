"""The exporter `parquet`: every table of a run as a file."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlprof import hookimpl
from rlprof_report.tables.frame import NAMES, table

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof_run import Run

log = logging.getLogger("rlprof.report")


class Parquet:
    """Write spans, steps, captures, requests and events of a run as Parquet (needs pyarrow)."""

    @hookimpl
    def render(self, run: Run, out: Path) -> list[Path]:
        """Write `parquet/<table>.parquet` into *out*; each file is whole or not there."""
        problems: list[str] = []
        files = [_write(run, name, out / "parquet", problems) for name in NAMES]
        for words in dict.fromkeys(problems):  # two tables may read one file
            log.warning("%s; left out", words)
        return files


def _write(run: Run, name: str, folder: Path, problems: list[str]) -> Path:
    schema, batches = table(run, name, problems)
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    file, unfinished = folder / f"{name}.parquet", folder / f".{name}.parquet"
    try:
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
        return unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
