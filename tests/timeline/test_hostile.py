"""Files that are odd as a whole: the export ends, its file opens, the other traces are whole."""

from __future__ import annotations

import gzip
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from rlprof_timeline import _tracks
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


class Exported:
    """A hostile file beside a good one, on a timeline, as a strict reader finds it."""

    def __init__(self, content: bytes, folder: Path) -> None:
        (folder / "bad.json").write_bytes(content)
        (folder / "good.json").write_bytes(GOOD)
        files = [folder / "bad.json", folder / "good.json"]
        self.written = Written(write(of_files(files), folder))
        about = self.written.about
        self.reason = next((one["reason"] for one in about["left_out"]), "")
        told = [source for source in about["sources"] if source["file"] == "bad.json"]
        self.problems = told[0]["problems"][:-1] if told else []
        assert len(about["left_out"]) + len(told) == 1
        is_sound(self.written)
        good = [event for event in self.written.events if str(event.get("name"))[:4] == "good"]
        assert [self.written.epoch_ns(event) for event in good] == [
            BASE + n * 10_000 for n in range(50)
        ]

    def count(self, name: str) -> int:
        """Count the events of that name."""
        return sum(event.get("name") == name for event in self.written.events)


def is_sound(written: Written) -> None:
    """Assert that there is nothing that makes Perfetto refuse the file, or read another number."""
    assert "\\" not in written.text
    for event in written.all["traceEvents"]:
        assert isinstance(event["ph"], str)
        assert len(event["ph"]) == 1
        assert all(0 <= event[key] < 1 << 31 for key in ("pid", "tid"))
        assert all(0 <= event[key] < 1 << 63 for key in ("id", "bind_id") if key in event)
        if event["ph"] != "M":
            assert 0 <= event["ts"] * 1000 < 1 << 63
            assert abs(event["ts"] + event.get("dur", 0)) * 1000 < 1 << 63
        for value in event.values():
            if isinstance(value, Fraction):
                assert value == 0 or 10**-300 < abs(value) < 10**300


FINE = [LAYOUTS["compact"](an_event("fine", n * 1_000)) for n in range(30)]
WHOLE = document(FINE, HEAD)
FILES: dict[str, tuple[bytes, int, str]] = {
    "with a mark of its order": (b"\xef\xbb\xbf" + WHOLE, 30, ""),
    "of CRLF": (document(list(map(LAYOUTS["kineto"], [an_event("fine", 0)] * 30)), HEAD)
                .replace(b"\n", b"\r\n"), 30, ""),
    "packed and cut, without a clock": (gzip.compress(document(FINE, {}))[:-4], 30, "is cut short"),
    "packed in two members": (gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:]), 30, ""),
    "zeros": (bytes(999_999), 0, "is no JSON"),
    "a word for the events": (b'{"traceEvents": "none"}', 0, "has no traceEvents"),
    "two of them": (WHOLE + WHOLE, 30, "what follows its events is no JSON"),
}  # fmt: skip


# failures.md: trace-damaged
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_odd_as_a_whole(name, tmp_path) -> None:
    """What can be read of it is there, and what is wrong is told."""
    content, fine, said = FILES[name]

    exported = Exported(content, tmp_path)

    assert exported.count("fine") == fine
    assert said in ([exported.reason, *exported.problems] if said else [exported.reason])
    assert said or exported.problems == []


# failures.md: trace-threads
def test_processes_and_threads_beyond_all_measure_share_a_track(tmp_path, monkeypatch) -> None:
    """None of their events is lost, and it is told."""
    monkeypatch.setattr(_tracks, "_MOST", 2_000)
    events = [an_event("fine", n, pid=n % 1_500, tid=10_000 + n) for n in range(3_000)]

    exported = Exported(document(list(map(LAYOUTS["kineto"], events)), HEAD), tmp_path)

    pids = {event["pid"] for event in exported.written.events if event["name"] == "fine"}
    assert exported.count("fine") == 3_000
    assert len(pids) == 1_024
    assert "bad · others" in exported.written.processes.values()
    assert exported.problems == ["has too many threads: those beyond share a track"]
