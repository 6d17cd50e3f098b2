"""Whoever wrote a trace meant harm: the export ends, its file opens, the other traces are whole."""

from __future__ import annotations

import gzip
import logging
import os
import resource
import subprocess
import sys
import zlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlprof_timeline import _tracks
from rlprof_timeline._loose import of_files
from rlprof_timeline._write import write
from tests.perfetto_engine import query_all
from tests.timeline.builder import Written
from tests.timeline.layouts import LAYOUTS, document

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BASE = 1_790_857_026_000_000_000
HEAD = {"baseTimeNanoseconds": BASE}
FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
MEMBERS = [
    "ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "id2", "bind_id", "s", "bp", "cname",
    "args", "tts", "tdur", "flow_in", "flow_out", "sf", "stack", "zz",
]  # fmt: skip
VALUES = [
    "[]", "{}", '"s"', "null", "true", "1", "-1.5", "1e30", "1e400", "-1e400", "1e-400",
    "0." + "0" * 400 + "1", "9" * 30, "-" + "9" * 30, "9" * 400, "9" * 5000, f'"{"9" * 5000}"',
    "NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"', '"sNaN"', '"1e999999999"',
    "1e999999999", "1e9999999999999999999999", '"1e9999999999999999999"', "9223372036854775807",
    "18446744073709551615", "-9223372036854775808", "2147483648", "-2147483649", "9e15", "1E5",
    "8999999999999999.9", '"\\\\"', '"a\\\\"', '"\\ud800"', '"\\u0000"', '""', "00", "[NaN]",
    '{"a": {"b": 1}}', "[" * 300 + "]" * 300, "[" * 980 + "]" * 980, "[" * 9999 + "]" * 9999,
]  # fmt: skip
"""What a member may be, and is not meant to."""


def an_event(name: str, ts_ns: int, **more: Any) -> dict[str, Any]:
    """Make a slice."""
    return {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": ts_ns, "dur": 1_000, **more}


GOOD = document([LAYOUTS["compact"](an_event(f"good {n}", n * 10_000)) for n in range(50)], HEAD)


def odd_events(layout: str, member: str) -> list[str]:
    """Encode events that are well but for one member, which is all that it is not meant to be."""
    events = []
    for value in VALUES:
        for phase in "Xsi":
            event = an_event("odd", 5_000) | {"ph": phase, member: "@"}
            events.append(LAYOUTS[layout](event).replace('"@"', value))
    return events


class Exported:
    """A hostile file beside a good one, on a timeline, as a strict reader finds it."""

    def __init__(self, content: bytes, folder: Path) -> None:
        (folder / "bad.json").write_bytes(content)
        (folder / "good.json").write_bytes(GOOD)
        files = [folder / "bad.json", folder / "good.json"]
        self.file = write(of_files(files), folder)
        self.written = Written(self.file)
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
        for key, value in event.items():
            if key in ("tts", "tdur"):
                assert isinstance(value, (int, Fraction))
            if isinstance(value, Fraction):
                assert value == 0 or 10**-300 < abs(value) < 10**300


# failures.md: trace-damaged
@pytest.mark.parametrize("layout", ["kineto", "compact"])
@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_of_any_type_and_size_harms_nobody(member, layout, tmp_path) -> None:
    """What it makes of its own event is its own; the events around it arrive."""
    fine = [LAYOUTS[layout](an_event("fine", n * 1_000)) for n in range(30)]
    odd = odd_events(layout, member)

    for events in ([*fine, *odd, *fine], [*odd, *fine, *fine]):
        exported = Exported(document(events, HEAD), tmp_path)

        assert exported.count("fine") == 60


# failures.md: trace-damaged
@pytest.mark.parametrize("member", MEMBERS)
def test_one_such_member_in_a_file_harms_nobody(member, tmp_path) -> None:
    """Where all other events are as they should be, so that they are moved the fast way."""
    layout = "kineto"
    fine = [LAYOUTS[layout](an_event("fine", n * 1_000_000)) for n in range(9)]
    files = [tmp_path / f"{n}.json" for n in range(3 * len(VALUES))]
    for file, odd in zip(files, odd_events(layout, member), strict=True):
        file.write_bytes(document([*fine[:5], odd, *fine[5:]], HEAD))

    written = Written(write(of_files(files), tmp_path))

    is_sound(written)
    found = [event for event in written.events if event.get("name") == "fine"]
    assert [written.epoch_ns(event) - BASE for event in found] == [
        n * 1_000_000 for _ in files for n in range(9)
    ]


# failures.md: trace-damaged
@pytest.mark.parametrize("path", ["", "rlprof", "rlprof.epoch_ns", "rlprof.error_ns",
                                  "rlprof.clock", "distributedInfo", "distributedInfo.rank",
                                  "distributedInfo.world_size", "baseTimeNanoseconds"])  # fmt: skip
def test_a_head_of_any_kind_harms_nobody(path, tmp_path) -> None:
    """Whatever is said of the clock and the rank, the other file stays where it is."""
    outer, _, inner = path.partition(".")
    for value in VALUES:
        text = f'{{"epoch_ns": {BASE}, "rank": 1, "{inner}": {value}}}' if inner else value
        head = f'{{"{outer}": {text}, "traceEvents": ['
        event = LAYOUTS["compact"](an_event("fine", 1_000))
        exported = Exported(f"{head}{event}]}}".encode(), tmp_path)

        assert exported.count("fine") == 1 or exported.reason


# failures.md: trace-damaged
def test_layouts_may_be_mixed_in_a_file(tmp_path) -> None:
    """Each event is moved, though those around it are of another layout."""
    names = list(LAYOUTS)
    order = [names[n * n % 7 % 4] for n in range(400)] + ["kineto"] * 400 + names * 3
    events = [LAYOUTS[layout](an_event("fine", n * 1_000)) for n, layout in enumerate(order)]

    exported = Exported(document(events, HEAD), tmp_path)

    fine = [event for event in exported.written.events if event["name"] == "fine"]
    assert [exported.written.epoch_ns(event) - BASE for event in fine] == [
        n * 1_000 for n in range(len(order))
    ]
    assert len({event["pid"] for event in fine}) == 1
    assert exported.problems == []


# failures.md: trace-damaged
def test_members_that_stand_twice(tmp_path) -> None:
    """The last one counts, as for every reader; a second list of events is told."""
    events = '{"ph":"i","ph":"X","name":"a","name":"fine","ts":1,"ts":2,"pid":1,"pid":2,"dur":1}'
    head = f'{{"rlprof": 7, "baseTimeNanoseconds": 5, "baseTimeNanoseconds": {BASE}, '
    content = f'{head}"traceEvents": [{events}], "traceEvents": [{events}]}}'

    exported = Exported(content.encode(), tmp_path)

    assert exported.written.epoch_ns(exported.written.named("fine")) == BASE + 2_000
    assert exported.written.track("fine") == ("bad · process 2", "")
    assert exported.problems == ["has traceEvents twice: the second of them dropped"]


FINE = [LAYOUTS["compact"](an_event("fine", n * 1_000)) for n in range(30)]
WHOLE = document(FINE, HEAD)
DEEP = "[" * 100_000 + "]" * 100_000
FILES: dict[str, tuple[bytes, int, str]] = {
    "UTF-16": (WHOLE.decode().encode("utf-16"), 0, "is no JSON"),
    "with a mark of its order": (b"\xef\xbb\xbf" + WHOLE, 30, ""),
    "of CRLF": (document(list(map(LAYOUTS["kineto"], [an_event("fine", 0)] * 30)), HEAD)
                .replace(b"\n", b"\r\n"), 30, ""),
    "packed and cut, without a clock": (gzip.compress(document(FINE, {}))[:-4], 30, "is cut short"),
    "packed twice": (gzip.compress(gzip.compress(WHOLE)), 0, "is no JSON"),
    "packed, with more behind": (gzip.compress(WHOLE) + b"garbage", 30, "is cut short"),
    "packed, with zeros behind": (gzip.compress(WHOLE) + bytes(99), 30, ""),
    "packed in two members": (gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:]), 30, ""),
    "a head of gzip": (b"\x1f\x8b", 0, "is cut short"),
    "deep in its head": (document(FINE, HEAD).replace(b"{", b'{"a": ' + DEEP.encode() + b", ", 1),
                         30, "what stands before its events is no JSON"),
    "deep in its tail": (document(FINE, HEAD, f', "a": {DEEP}'), 30,
                         "what follows its events is no JSON"),
    "lists without an end in its tail": (document(FINE, {}, ', "": []' * 8_000 + "@"), 30,
                                         "what follows its events is no JSON"),
    "deep in an event": (document([*FINE, f'{{"ph": "X", "ts": 1, "args": {DEEP}}}'], HEAD), 30,
                         "events that cannot be read: 1 dropped"),
    "nothing but brackets": (b"[" * 999_999, 0, "is cut short"),
    "nothing but braces": (b'{"a":' * 199_999, 0, "has no traceEvents"),
    "nothing but ends": (b'{"traceEvents": [' + b"}]" * 99_999, 0, "is cut short"),
    "zeros": (bytes(999_999), 0, "is no JSON"),
    "spaces": (b" " * 999_999, 0, "is no JSON"),
    "a word for the events": (b'{"traceEvents": "none"}', 0, "has no traceEvents"),
    "nothing in it": (b"", 0, "is empty"),
    "two of them": (WHOLE + WHOLE, 30, "what follows its events is no JSON"),
    "keys in its head": (b'{"a": "' + b'\\"traceEvents\\": [' * 9999 + b'", ' + WHOLE[1:], 30, ""),
    "keys in keys": (b'{"a": [' + b'{"traceEvents": [' * 99_999, 0,
                     "what stands before its events is no JSON"),
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


# failures.md: trace-damaged
@FIXTURE
@given(where=st.integers(2, 10**6), byte=st.integers(1, 255))
def test_a_flipped_byte_in_gzip_harms_nobody(where, byte, tmp_path) -> None:
    """Wherever it is: what was unpacked before it stays, and it is told if anything is lost."""
    packed = bytearray(gzip.compress(WHOLE, mtime=0))
    where %= len(packed)
    packed[where] ^= byte

    exported = Exported(bytes(packed), tmp_path)

    assert exported.reason or exported.problems or unpacked(bytes(packed)) == WHOLE


def unpacked(packed: bytes) -> bytes:
    """Unpack by another reader, to which some bits mean nothing: the time, for one, and padding."""
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        return b""


TOKENS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b" ", b"\xff", b"\x00", b"1", b"e9",
     b"NaN", b'"ph":"X"', b'"ts":1', b'"name":"a"', b'"args":{', b'"traceEvents":[', b"},{",
     b'{"ph":"X","name":"fine","ts":1,"pid":1,"tid":1}', b'"pid":', b'"id":', b"\n  {\n    "]
)  # fmt: skip


# failures.md: trace-left-out
@FIXTURE
@given(
    text=st.lists(TOKENS, max_size=40).map(b"".join),
    before=st.sampled_from([b"", b"[", b"{", b'{"traceEvents":[', WHOLE[:-3], WHOLE]),
    behind=st.sampled_from([b"", b"]}", b",", WHOLE]),
)
def test_text_of_any_kind_harms_nobody(text, before, behind, tmp_path) -> None:
    """The export ends, and its file is sound."""
    exported = Exported(before + text + behind, tmp_path)

    assert exported.written.about["epoch_ns"] > 0


# failures.md: trace-left-out
def test_a_link_is_read_as_what_it_leads_to(tmp_path) -> None:
    """It may lead anywhere, to itself for one."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "it.json").write_bytes(WHOLE)
    (tmp_path / "link.json").symlink_to(tmp_path / "there" / "it.json")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")

    files = [tmp_path / "link.json", tmp_path / "loop.json"]
    about = Written(write(of_files(files), tmp_path)).about

    assert [(source["file"], source["events"]) for source in about["sources"]] == [
        ("link.json", 30)
    ]
    assert about["left_out"][0]["reason"].startswith("cannot be read: ")


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


# failures.md: trace-damaged
def test_what_is_said_of_a_file_is_printed(tmp_path, caplog) -> None:
    """Also where most of it is shown."""
    caplog.set_level(logging.WARNING)

    Exported(WHOLE[:-300], tmp_path)

    assert "bad.json: is cut short; events that cannot be read: 1 dropped" in caplog.messages


# failures.md: trace-damaged
def test_perfetto_opens_a_timeline_with_all_of_it(tmp_path) -> None:
    """The good file's slices are there, whatever is beside them."""
    odd = [one for member in MEMBERS for one in odd_events("compact", member)]
    odd += [one for member in MEMBERS for one in odd_events("kineto", member)]
    exported = Exported(document(odd, HEAD), tmp_path)

    found = query_all(
        exported.file,
        good="select count(*) as n, min(dur) as dur from slice where name glob 'good *'",
        processes="select count(*) as n from process where name = 'good · process 7'",
    )

    assert found == {"good": [{"n": 50, "dur": 1_000}], "processes": [{"n": 1}]}
    assert exported.count("odd") > 1_000


def large() -> dict[str, bytes]:
    """Make 64 MB of files that are made to cost time or memory."""
    size = 4 << 20
    event = ',{"ph":"X","name":"b","pid":%d,"tid":%d,"ts":%d,"dur":1}'
    made = {
        "name": '{"ph":"X","ts":1,"name":"' + "x" * size + '"}',
        "lists": '{"ph":"X","ts":1,"zz":[' + "[]," * (size // 3) + "1]}",
        "decimals": '{"ph":"X","ts":1,"dur":NaN,"zz":[' + "1.5," * (size // 4) + "1]}",
        "deep": '{"ph":"X","ts":1,"args":' + "[" * (size // 2) + "]" * (size // 2) + "}",
        "tiny": "{}," * (size // 3) + "{}",
        "ends": "}]" * (size // 2),
        "cuts": '},{"ph":1' * (size // 9),
        "cuts in text": '{"ph":"X","ts":1,"name":"' + '},{\\"ph\\":1' * (size // 12) + '"}',
        "unclosed": '{"name":[{"ph":1},' * (size // 18),
        "alternating": ",".join(['{"ph":"X","ts":1,"a":"b"c"},{"ph":"i","ts":1}'] * (size // 46)),
        "pids": "".join(event % (n, 1, n) for n in range(size // 60))[1:],
        "tids": "".join(event % (1, n, n) for n in range(size // 60))[1:],
        "ids": ",".join(f'{{"ph":"s","id":"i{n}","ts":1}}' for n in range(size // 32)),
        "names": ",".join(
            f'{{"ph":"M","name":"thread_name","pid":{n},"tid":1,"args":{{"name":"x"}}}}'
            for n in range(size // 70)
        ),
    }  # fmt: skip
    files = {f"{name}.json": document([*FINE, text, *FINE], HEAD) for name, text in made.items()}
    files["head.json"] = b'{"a":[' + b'{"traceEvents":[],"b":"' * (size // 23) + WHOLE
    files["noise.json"] = WHOLE[:-2] + bytes(n * n % 251 for n in range(1 << 16)) * (size >> 16)
    files["bomb.json.gz"] = gzip.compress(b"[" * (100 << 20), 1)
    return files


# failures.md: trace-damaged
def test_64_mb_of_it_from_the_command_line(tmp_path) -> None:
    """It ends, in bounded time and memory; each file's fate is printed; the good one is whole."""
    folder, files = tmp_path / "traces", large()
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "good.json").write_bytes(GOOD)
    os.mkfifo(folder / "fifo.json")
    (folder / "folder.json").mkdir()
    assert sum(map(len, files.values())) > 64 << 20

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (200, 200))

    done = subprocess.run(
        [sys.executable, "-m", "rlprof", "export", folder, "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        preexec_fn=bounded,
        timeout=600,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert all(name in done.stderr for name in files)
    written = Written(tmp_path / "out" / "timeline.json.gz")
    is_sound(written)
    about = written.about
    events = {source["file"]: source["events"] for source in about["sources"]}
    assert {*events} | {one["file"] for one in about["left_out"]} == {*files, "good.json"}
    assert events["good.json"] == 50
    assert all(events[name] >= 30 for name in events if name not in ("good.json", "head.json"))
    good = [event for event in written.events if str(event.get("name"))[:4] == "good"]
    assert [written.epoch_ns(event) for event in good] == [BASE + n * 10_000 for n in range(50)]
