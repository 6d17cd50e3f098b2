"""A run as tables: Arrow in memory, Parquet on disk, one schema for both.

`schema.py` says which columns there are; `spans.py`, `captures.py`, `requests.py`, `events.py` and
`steps.py` each make the rows of one table; `frame.py` puts them together, `parquet.py` writes them.
"""

from __future__ import annotations

from rlprof_report.tables.frame import frame
from rlprof_report.tables.schema import SCHEMA, TABLES

__all__ = ["SCHEMA", "TABLES", "frame"]
