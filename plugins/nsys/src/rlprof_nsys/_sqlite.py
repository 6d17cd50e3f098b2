"""Reads the SQLite of `nsys export` row by row, because a report may not fit into memory.

Empty tables do not exist, and columns depend on the release of nsys: missing values read as None.
nsys guarantees no order of rows, so SQLite sorts them, on disk if necessary.
"""

from __future__ import annotations

import json
import sqlite3
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_TEXTS = 1 << 16
"""The number of texts to cache; any other text costs a query."""
PID_SHIFT, THREAD = 24, 0xFFFFFF
"""A `globalTid` has the thread in its lowest 24 bits and the process in the next 24."""


class UnreadableError(Exception):
    """The file does not hold a report that a timeline can show."""


@attrs.frozen
class Share:
    """Selects the events of one process in a shared report; default: all events."""

    only: int | None = None
    without: frozenset[int] = frozenset()


class Tables:
    """The tables of one report, with the events of *share* in it."""

    def __init__(self, file: Path, share: Share | None = None) -> None:
        self._share = share or Share()
        self._db = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        self._db.text_factory = _text
        self._columns: dict[str, frozenset[str]] = {}
        self.quoted: Callable[[int | None], str] = lru_cache(_TEXTS)(self._quoted)
        """Returns the text of an id in StringIds, as JSON."""

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of *table*; empty: there is no such table."""
        if table not in self._columns:
            rows = self._db.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = frozenset(name for (name,) in rows)
        return self._columns[table]

    def condition(self, table: str) -> str:
        """Return the share as an SQL condition on *table*; empty: its rows are of no process."""
        share, columns = self._share, self.columns(table)
        whose = next((name for name in ("globalTid", "globalPid") if name in columns), "")
        if not whose:
            return ""
        pid = f"({whose} >> {PID_SHIFT} & {THREAD})"
        if share.only is not None:
            return f"{pid} = {share.only}"
        return f"{pid} NOT IN ({', '.join(map(str, share.without))})"

    def events(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows that overlap the session, the earliest first.

        nsys also writes older rows, for example that it traced a library from process start on.
        """
        reach = '("start" >= 0 OR "end" > 0)'
        chosen = [reach, where, self.condition(table)]
        yield from self.rows(table, *columns, where=" AND ".join(filter(None, chosen)))

    def rows(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of *table*, the earliest first; none if there is no such table."""
        known = self.columns(table)
        if not known:
            return
        picked = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
        condition = f" WHERE {where}" if where else ""
        order = ' ORDER BY "start", rowid' if "start" in known else ""
        query = f"SELECT {picked} FROM {table}{condition}{order}"  # noqa: S608 -- our own words
        yield from chain(self._db.execute(query))  # a cursor would close after the database

    def first(self, query: str, *values: Any) -> Any:
        """Return the first value of a query; None: it has no value, or a table is missing."""
        try:
            row = self._db.execute(query, values).fetchone()
        except sqlite3.OperationalError:  # no such table, no such column
            return None
        return row[0] if row else None

    def text(self, number: int | None) -> str:
        """Return the text of an id in StringIds."""
        found = self.first("SELECT value FROM StringIds WHERE id = ?", number)
        return found if isinstance(found, str) else ""

    def _quoted(self, number: int | None) -> str:
        return json.dumps(self.text(number) or "unnamed")

    def epoch_ns(self) -> int:
        """Return the wall clock at time 0."""
        found = self.first("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
        if type(found) is not int:
            raise UnreadableError("does not say when its session began (utcEpochNs)")
        return found

    def duration_ns(self) -> int:
        """Return the duration of the session; 0: it is not recorded."""
        return self.first("SELECT duration FROM ANALYSIS_DETAILS") or 0

    def labels(self, table: str) -> dict[int, str]:
        """Return the labels of an enumeration."""
        return {number: label or "" for number, label in self.rows(table, "id", "label")}

    def process_name(self, pid: int) -> str:
        """Return the name of a process, without its folder."""
        name = self.first("SELECT name FROM PROCESSES WHERE pid = ?", pid)
        return name.rpartition("/")[2] if isinstance(name, str) else ""

    def thread_name(self, global_tid: int) -> str:
        """Return the name of a thread."""
        query = "SELECT nameId FROM ThreadNames WHERE globalTid = ? ORDER BY priority DESC"
        return self.text(self.first(query, global_tid))

    def note_launches(self) -> None:
        """Index the CUDA API calls that launched device events."""
        self._db.executescript(
            "CREATE TEMP TABLE launches (process INT, correlation INT, start INT, thread INT,"
            " PRIMARY KEY (process, correlation)) WITHOUT ROWID"
        )
        if {"correlationId", "globalTid"} <= self.columns("CUPTI_ACTIVITY_KIND_RUNTIME"):
            self._db.execute(
                "INSERT OR IGNORE INTO launches SELECT globalTid >> ?, correlationId, start,"
                " globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId > 0"
                " AND globalTid IS NOT NULL",
                (PID_SHIFT,),
            )

    def launch(self, global_pid: int | None, correlation: int | None) -> tuple[int, int] | None:
        """Return the start and thread of a launching call; None: the report does not have it."""
        if global_pid is None or correlation is None:
            return None
        query = "SELECT start, thread FROM launches WHERE process = ? AND correlation = ?"
        found = self._db.execute(query, (global_pid >> PID_SHIFT, correlation)).fetchone()
        return (found[0], found[1]) if found else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
