"""Of a file that was cut or damaged, whatever can be read stands on the timeline."""

from __future__ import annotations

import gzip
import json
import zlib
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlprof_timeline._loose import of_files
from rlprof_timeline._write import write
from rlprof_traces import UnreadableError
from tests.timeline.builder import Written
from tests.timeline.layouts import LAYOUTS, document, read

pytestmark = pytest.mark.slow

SIZES = st.sampled_from([64, 300, 5000, 1 << 20])
FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
HEAD = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000}
TAIL = ', "traceName": "a}]}", "logs": [{"name": "x"}, {"name": "y"}]'


def an_event(nth: int, *, nested: bool = False) -> dict[str, Any]:
    """Make an event that is known again by its name."""
    args: dict[str, Any] = {"External id": nth, "text": 'a "quoted\\" },{ ]'}
    if nested:
        args["frames"] = [{"name": f"frame {n}", "line": n} for n in range(12)]
    return {
        "ph": "X", "cat": "cpu_op", "name": f"op {nth}", "pid": 7, "tid": 7,
        "ts": nth * 1000, "dur": 500, "args": args,
    }  # fmt: skip


def whole(content: bytes, encoded: list[str]) -> list[str]:
    """Return the names of the events that lie wholly in *content*, which was cut."""
    found, at = [], 0
    for nth, event in enumerate(encoded):
        at = content.find(event.encode(), at)
        if at < 0:
            break
        at += len(event.encode())
        found.append(f"op {nth}")
    return found


# failures.md: trace-damaged
@pytest.mark.parametrize("layout", ["kineto", "compact"])
@FIXTURE
@given(cut=st.integers(0, 10**6), size=SIZES, nested=st.booleans(), is_packed=st.booleans())
def test_what_lies_before_a_cut_arrives(layout, tmp_path, *, cut, size, nested, is_packed) -> None:
    """Every event that is whole, from files cut anywhere, packed or not; and the cut is said."""
    encoded = [LAYOUTS[layout](an_event(nth, nested=nested)) for nth in range(20)]
    content = document(encoded, HEAD, TAIL)
    head = content.index(b"[") + 1
    if is_packed:
        packed = gzip.compress(content)
        packed = packed[: 3 + cut % (len(packed) - 3)]
        content, given = zlib.decompressobj(31).decompress(packed), packed
    else:
        content = given = content[: 1 + cut % (len(content) - 1)]
    expected = whole(content, encoded)

    if len(content) < head or not content:
        with pytest.raises(UnreadableError, match=r"^is cut short$"):
            read(given, tmp_path, size)
        return
    events, text, place = read(given, tmp_path, size)

    assert [event["name"] for event in events] == expected
    assert text.problems == ["is cut short"]
    assert (text.dropped <= 1, place.untimed) == (True, 0)


NESTED = json.dumps(an_event(99, nested=True)).encode()
GARBAGE = {
    "an unescaped quote": b'{"ph": "X", "name": "a"b", "pid": 1, "tid": 1, "ts": 1, "dur": 1}',
    "no closing quote": b'{"ph": "X", "name": "a, "pid": 1, "tid": 1, "ts": 1, "dur": 1}',
    "no closing brace": b'{"ph": "X", "name": "bad", "pid": 1, "tid": 1, "ts": 1, "dur": 1',
    "brackets": b"}]}]}]}}]",
    "zeros": bytes(50),
}
"""What is no event at all, where one was to be."""
ODD = {
    "NaN": b'{"ph": "X", "name": "bad", "pid": 1, "tid": 1, "ts": 1, "dur": NaN}',
    "a line feed": b'{"ph": "X", "name": "bad\n", "pid": 1, "tid": 1, "ts": 1, "dur": 1}',
    "bad UTF-8, nested": NESTED.replace(b"frame 11", b"\xe9"),
    "no comma behind": json.dumps(an_event(98)).encode() + NESTED,
}
"""What is an event, though strict JSON it is not."""


# failures.md: trace-damaged
@pytest.mark.parametrize("layout", ["kineto", "compact"])
@pytest.mark.parametrize("where", [0, 19])
def test_one_bad_event_loses_no_other(layout, where, tmp_path) -> None:
    """Whatever stands in its place, and wherever; what was dropped is counted."""
    events = [an_event(nth, nested=nth % 3 == 0) for nth in range(20)]
    encoded = [LAYOUTS[layout](event) for event in events]
    around = document([*encoded[:where], "@", *encoded[where:]], HEAD, TAIL)
    expected = [event["name"] for event in events]

    for (odd, bad), size in product({**GARBAGE, **ODD}.items(), (64, 5000)):
        found, text, place = read(around.replace(b"@", bad), tmp_path, size)
        names = [event["name"] for event in found]

        assert [name for name in names if name in expected] == expected, (odd, size)
        assert text.problems == []
        assert text.tail["logs"] == [{"name": "x"}, {"name": "y"}]
        if odd in GARBAGE:
            assert text.dropped + place.untimed > 0 or "bad" in names
        else:
            assert (text.dropped, place.untimed) == (0, 0)
            assert len(names) == 20 + bad.count(b'"ph"')


BASE = HEAD["baseTimeNanoseconds"]


def a_slice(name: str, ts_ns: int) -> dict[str, Any]:
    """Make a slice."""
    return {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": ts_ns, "dur": 1_000}


GOOD = document([LAYOUTS["compact"](a_slice(f"good {n}", n * 10_000)) for n in range(50)], HEAD)
FINE = [LAYOUTS["compact"](a_slice("fine", n * 1_000)) for n in range(30)]
WHOLE = document(FINE, HEAD)
FILES: dict[str, tuple[bytes, int, list[str]]] = {
    "with a mark of its order": (b"\xef\xbb\xbf" + WHOLE, 30, []),
    "of CRLF": (document(list(map(LAYOUTS["kineto"], [a_slice("fine", 0)] * 30)), HEAD)
                .replace(b"\n", b"\r\n"), 30, []),
    "packed in two members": (gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:]), 30, []),
    "packed and cut": (gzip.compress(WHOLE)[:-4], 30, ["is cut short"]),
    "zeros": (bytes(999_999), 0, ["is no JSON"]),
    "a word for the events": (b'{"traceEvents": "none"}', 0, ["has no traceEvents"]),
    "two of them": (WHOLE + WHOLE, 30, ["what follows its events is no JSON"]),
}  # fmt: skip


# failures.md: trace-damaged
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_odd_as_a_whole(name, tmp_path) -> None:
    """What can be read of it is there, beside all of a good one, and what is wrong is told."""
    content, fine, wrong = FILES[name]
    files = [tmp_path / "bad.json", tmp_path / "good.json"]
    for file, text in zip(files, (content, GOOD), strict=True):
        file.write_bytes(text)

    written = Written(write(of_files(files), tmp_path))

    good = [event for event in written.events if event["name"].startswith("good")]
    assert [written.epoch_ns(event) - BASE for event in good] == [n * 10_000 for n in range(50)]
    told = [one["reason"] for one in written.about["left_out"]]
    for source in written.about["sources"]:
        told += source["problems"][:-1] if source["file"] == "bad.json" else []
    assert sum(event["name"] == "fine" for event in written.events) == fine
    assert (set(wrong) <= set(told), bool(told)) == (True, bool(wrong))
