"""The lines of a spans file: whatever stands there is read, and no more spans than lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rlprof
from tests.fuzz._loop import Parser
from tests.fuzz.parsers import _runs

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = (b'"kind":"step"', b'"kind":"phase"', b'"kind":"later"', b'"t0":', b'"t1":', b'"parent":1',
          b'"occurrence":', b'"attributes":{"a":NaN}', b'"attributes":{"step":1}', b"\n", b"\0\0",
          b'"name":"\\ud800"', b'"id":1')  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """The spans of a run made in earnest."""
    path, name = _runs.build(folder / "runs")
    return [(path / "spans" / f"{name}.jsonl").read_bytes()]


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Put them into a run folder, and read, list and export that."""
    path = _runs.copy(folder.parent / "seeds" / "runs" / "a-run", folder / "a-run")
    (file,) = path.glob("spans/*")
    file.write_bytes(data)
    said = _runs.use(path, timeline=thorough)
    problems: list[str] = []
    spans = list(rlprof.read(path).spans(problems))
    lines = [line for line in data.split(b"\n") if line.strip()]
    assert len(spans) <= len(lines), f"{len(spans)} spans of {len(lines)} lines"
    for span in spans:
        assert span.start_ns <= span.end_ns, span
        assert type(span.id) is type(span.start_ns) is type(span.end_ns) is int, span
        assert type(span.name) is str, span
    return said


TRACED = ("/rlprof_run/", "/rlprof/rundir/", "/rlprof_timeline/_spans", "/rlprof_traces/_lines")
PARSER = Parser("spans", "lines", TRACED, TOKENS, seeds, check)
