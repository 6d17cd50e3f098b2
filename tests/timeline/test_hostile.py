"""Traces that are odd as a whole: the export ends, its file opens, the other traces are whole."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from rlprof_timeline._loose import of_files
from rlprof_timeline._write import write
from tests.timeline.builder import Written
from tests.timeline.layouts import LAYOUTS, document

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BASE = 1_790_857_026_000_000_000
HEAD = {"baseTimeNanoseconds": BASE}


def an_event(name: str, ts_ns: int, **more: Any) -> dict[str, Any]:
    """Make a slice."""
    return {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": ts_ns, "dur": 1_000, **more}


GOOD = document([LAYOUTS["compact"](an_event(f"good {n}", n * 10_000)) for n in range(50)], HEAD)
FINE = [LAYOUTS["compact"](an_event("fine", n * 1_000)) for n in range(30)]
WHOLE = document(FINE, HEAD)
FILES: dict[str, tuple[bytes, int, list[str]]] = {
    "with a mark of its order": (b"\xef\xbb\xbf" + WHOLE, 30, []),
    "of CRLF": (document(list(map(LAYOUTS["kineto"], [an_event("fine", 0)] * 30)), HEAD)
                .replace(b"\n", b"\r\n"), 30, []),
    "packed in two members": (gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:]), 30, []),
    "packed and cut": (gzip.compress(WHOLE)[:-4], 30, ["is cut short"]),
    "zeros": (bytes(999_999), 0, ["is no JSON"]),
    "a word for the events": (b'{"traceEvents": "none"}', 0, ["has no traceEvents"]),
    "two of them": (WHOLE + WHOLE, 30, ["what follows its events is no JSON"]),
}  # fmt: skip


def beside_a_good_one(content: bytes, folder: Path) -> tuple[Written, list[str]]:
    """Export a file beside a good one, all of which must be there; return what is told of it."""
    files = [folder / "bad.json", folder / "good.json"]
    for file, text in zip(files, (content, GOOD), strict=True):
        file.write_bytes(text)
    written = Written(write(of_files(files), folder))
    good = [event for event in written.events if event["name"].startswith("good")]
    assert [written.epoch_ns(event) - BASE for event in good] == [n * 10_000 for n in range(50)]
    told = [one["reason"] for one in written.about["left_out"]]
    for source in written.about["sources"]:
        told += source["problems"][:-1] if source["file"] == "bad.json" else []
    return written, told


# failures.md: trace-damaged
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_odd_as_a_whole(name, tmp_path) -> None:
    """What can be read of it is there, and what is wrong is told."""
    content, fine, wrong = FILES[name]

    written, told = beside_a_good_one(content, tmp_path)

    assert sum(event["name"] == "fine" for event in written.events) == fine
    assert (set(wrong) <= set(told), bool(told)) == (True, bool(wrong))
