"""One table of a run, in memory or batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.errors import RlprofError
from rlprof_report.tables import captures, events, requests, spans, steps
from rlprof_report.tables.schema import TABLES, Columns, arrow, batch, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlprof_run import Run

NAMES = (*TABLES, "steps")
_ROWS = 1 << 16
"""Of a batch."""
_MAKERS: dict[str, Callable[[Run, list[str]], Iterable[Sequence[Any]]]] = {
    "spans": spans.rows,
    "captures": captures.rows,
    "requests": requests.rows,
}


def frame(run: Run, kind: str, problems: list[str] | None = None) -> Any:
    """Return the table *kind* of *run* as a pyarrow Table.

    *kind* is one of `spans`, `steps`, `captures`, `requests`, `events`. Unreadable data is left out
    and reported to *problems*.
    """
    schema, batches = table(run, kind, [] if problems is None else problems)
    return arrow().Table.from_batches(batches, schema).unify_dictionaries()


def table(run: Run, kind: str, problems: list[str]) -> tuple[Any, Iterator[Any]]:
    """Return the schema of a table and an iterator that makes its batches."""
    if kind not in NAMES:
        raise RlprofError(
            f"frame: there is no table {kind!r}; there are {', '.join(sorted(NAMES))}"
        )
    if kind == "steps":
        columns, made = steps.columns_and_rows(run)
        schema = schema_of(run, kind, columns)
        return schema, _batches(made, columns, schema)
    schema = schema_of(run, kind, TABLES[kind])
    if kind == "events":
        return schema, events.batches(run, schema, problems)
    return schema, _batches(_MAKERS[kind](run, problems), TABLES[kind], schema)


def _batches(rows: Iterable[Sequence[Any]], columns: Columns, schema: Any) -> Iterator[Any]:
    kept: list[Sequence[Any]] = []
    for row in rows:
        kept.append(row)
        if len(kept) == _ROWS:
            yield batch(kept, columns, schema)
            kept = []
    if kept:
        yield batch(kept, columns, schema)
