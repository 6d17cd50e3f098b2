"""A trace artifact, as the timeline reads it: on the timeline, or left out with its reason."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import rlprof
from rlprof_timeline import Timeline
from tests.fuzz._loop import Parser
from tests.fuzz.parsers import _runs
from tests.timeline.builder import Written

if TYPE_CHECKING:
    from pathlib import Path

_GZIP = b"\x1f\x8b"
TOKENS = (b'"ph": "X"', b'"ph": "M"', b'"ph": "i"', b'"ph": null', b'"ts": ', b'"dur": -1',
          b'"epoch_ns": ', b'"error_ns": ', b'"id2": {"local": 1}', b'"bind_id": [', b'"\\ud800"',
          b'"pid": "7"', b'"pid": null', b'"pid": {}', b'"name": 7', b"NaN", b"1e999999", _GZIP,
          b'"traceEvents": [', b'"rlprof": {}', b'"sort_index": -1', b"\\\\",
          b"\\u0000")  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """The trace of a run made in earnest, packed and unpacked."""
    path, _ = _runs.build(folder / "runs")
    (packed,) = [file.read_bytes() for file in path.glob("*.gz")]
    return [gzip.decompress(packed), packed]


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Put it into a run folder, and export that; what is no gzip is packed first."""
    path = _runs.copy(folder.parent / "seeds" / "runs" / "a-run", folder / "a-run")
    (file,) = path.glob("*.gz")
    file.write_bytes(data if data.startswith(_GZIP) else gzip.compress(data, 1))
    out = folder / "out"
    out.mkdir(exist_ok=True)
    (made,) = Timeline().render(rlprof.read(path), out, {})
    assert [made] == list(out.iterdir()), list(out.iterdir())
    written = Written(made)
    early = [event for event in written.events if float(event["ts"]) < 0]
    assert not early, f"stands before time zero: {early}"
    left_out = {item["file"]: item["reason"] for item in written.about["left_out"]}
    read = [source for source in written.about["sources"] if source["file"] == file.name]
    assert (file.name in left_out) != bool(read), "is neither there nor left out"
    if not read:
        return left_out[file.name].partition(": ")[0]
    shown = [event for event in written.events if not str(event.get("cat")).startswith("rlprof.")]
    assert len(shown) >= read[0]["events"], "events are missing"
    return f"{read[0]['events']} {read[0]['problems']}"


PARSER = Parser("trace", "json", ("/rlprof_timeline/", "/rlprof_traces/"), TOKENS, seeds, check)
