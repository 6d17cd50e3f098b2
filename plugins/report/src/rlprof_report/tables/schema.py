"""The columns of each table and their types: numbered, and the same in memory and on disk.

Times are epoch ns on the run's clock. `word` is text that recurs, stored as a dictionary.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from rlprof.errors import RlprofError
from rlprof_run import unbroken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Target
    from rlprof_run import Run

SCHEMA = 1
"""Rises when a column is removed or changes its meaning; a new column does not count."""

Kind = Literal["word", "text", "texts", "int", "float"]
Columns = dict[str, Kind]

_WHO: Columns = {"run": "word", "process": "word", "role": "word", "rank": "int"}
TABLES: dict[str, Columns] = {
    "spans": {
        **_WHO, "replica": "word", "kind": "word", "name": "word", "step": "int",
        "occurrence": "int", "start_ns": "int", "end_ns": "int", "id": "int", "parent": "int",
        "thread": "int", "trajectory": "text", "turn": "int", "tool": "word",
        "prompt_tokens": "int", "tokens": "int", "group": "text", "version": "word",
        "attributes": "text",
    },
    "captures": {
        **_WHO, "replica": "word", "worker": "int", "tool": "word", "window": "word",
        "start_step": "int", "end_step": "int", "phase": "word", "occurrence": "int",
        "state": "word", "reason": "text", "request": "word", "opened_ns": "int",
        "closed_ns": "int", "start_s": "float", "stop_s": "float", "export_s": "float",
        "events": "int", "bytes": "int", "files": "texts",
    },
    "requests": {
        **_WHO, "replica": "word", "source": "word", "id": "text", "step": "int",
        "trajectory": "text", "turn": "int", "start_ns": "int", "prefill_ns": "int",
        "decode_ns": "int", "end_ns": "int", "prompt_tokens": "int", "tokens": "int",
        "finish": "word", "preemptions": "int",
    },
    "events": {
        **_WHO, "replica": "word", "worker": "int", "tool": "word", "window": "word",
        "step": "int", "phase": "word", "file": "word", "category": "word", "name": "word",
        "start_ns": "int", "dur_ns": "int", "pid": "int", "tid": "int", "stream": "int",
        "correlation": "int",
    },
}  # fmt: skip
"""Table → its columns. `steps` is not here: it has a column for each phase of its run."""

_LARGEST = 2**63


def arrow() -> Any:
    """Import pyarrow, or say what to install."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise RlprofError("tables: need pyarrow; install it with: pip install pyarrow") from None
    return pa


def schema_of(run: Run, table: str, columns: Columns) -> Any:
    """Return the Arrow schema of a table; its metadata has the run, and the error of its clocks."""
    pa = arrow()
    types = {
        "word": pa.dictionary(pa.int32(), pa.string()), "text": pa.string(),
        "texts": pa.list_(pa.string()), "int": pa.int64(), "float": pa.float64(),
    }  # fmt: skip
    bounds: dict[str, int] = {}
    for process in run.processes:
        bound = max(pair.bound_ns for pair in unbroken(process.clocks)[0])
        bounds[process.here.host] = max(bound, bounds.get(process.here.host, 0))
    metadata = {
        "rlprof_schema": str(SCHEMA),
        "rlprof_table": table,
        "rlprof_run": run_name(run),
        "rlprof_clock_bound_ns": json.dumps(bounds),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns.items()], metadata=metadata)


def run_name(run: Run) -> str:
    """Name a run as its folder does: a resumed one with its attempt."""
    return run.run_id if run.attempt == 1 else f"{run.run_id}/attempt_{run.attempt}"


def replica_of(target: Target) -> str | None:
    """Return the replica of *target* as the tables have it."""
    return None if target.replica is None else str(target.replica)


def batch(rows: Sequence[Sequence[Any]], columns: Columns, schema: Any) -> Any:
    """Make one record batch; text and numbers that Arrow cannot hold are escaped or left out."""
    pa = arrow()
    made = []
    for kind, field, *column in zip(columns.values(), schema, *rows, strict=True):
        plain = pa.string() if kind == "word" else field.type
        try:
            array = pa.array(column, plain)
        except (ValueError, OverflowError):  # half a character, a number beyond 64 bits
            array = pa.array([_bearable(value) for value in column], plain)
        made.append(array.dictionary_encode() if kind == "word" else array)
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _bearable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_bearable(one) for one in value]
    return None if isinstance(value, int) and abs(value) >= _LARGEST else value
