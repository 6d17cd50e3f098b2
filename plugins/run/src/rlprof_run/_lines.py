"""The records of a file of JSON lines, whatever a crash or a stranger has left in it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST = 16 << 20
"""Bytes of one line; far more than rlprof writes, and no harm to any memory."""


def read_lines(file: Path, problems: list[str], mark: bytes = b"") -> Iterator[dict[str, Any]]:
    """Read the records of *file*; skip other lines, and count them in *problems*.

    Lines without *mark* are passed over unread.
    """
    cut = long = 0
    try:
        with open_regular(file) as stream:
            for line in iter(partial(stream.readline, _MOST), b""):
                if len(line) == _MOST and not line.endswith(b"\n"):
                    long += 1
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(_MOST)  # noqa: PLW2901 -- the rest of it
                    continue
                if mark not in line:
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if isinstance(record, dict):
                    yield record
                else:
                    cut += bool(line.strip())
    except FileNotFoundError:
        return
    except OSError as exc:
        problems.append(f"{file.parent.name}/{file.name}: cannot be read: {exc.strerror or exc}")
    for count, what in ((cut, "cut"), (long, f"oversized (> {_MOST >> 20} MiB)")):
        if count:
            lines = "line" if count == 1 else "lines"
            problems.append(f"{file.parent.name}/{file.name}: {count} {what} {lines} skipped")
