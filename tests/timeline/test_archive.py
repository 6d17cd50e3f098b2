"""An archive holds the traces as they lie, and a manifest that lays them on one clock.

No Perfetto of 58 or later can be run here, so what it reads is held against its documents:
docs/reference/perfetto-manifest.md and src/trace_processor/util/zip_reader.cc of google/perfetto.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import logging
import struct
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

import rlprof
from rlprof import plugins
from rlprof.cli import main
from rlprof.types import Window
from rlprof_timeline import Timeline, _archive, _content, _zip
from rlprof_timeline._archive import write_archive
from rlprof_timeline._opened import UnreadableError
from rlprof_timeline._recorded import of_run
from tests.perfetto_engine import query_all, summary
from tests.timeline.builder import NOW, RunBuilder, Written, as_trace
from tests.timeline.layouts import us
from tests.timeline.ranks import QUARTER, ROLLOUT

if TYPE_CHECKING:
    from collections.abc import Callable

UPDATE = Window(7, 8, "update_actor")
NAME = "timeline.perfetto-58.zip"
WHOLE = b'{"rlprof": {"epoch_ns": %d}, "traceEvents": [{"ph": "X", "ts": 1}]}\n' % NOW


class Archive:
    """An archive, as a reader of ZIP finds it that knows nothing of ours."""

    def __init__(self, file: Path) -> None:
        self.bytes = file.read_bytes()
        self.zip = zipfile.ZipFile(file)
        assert self.zip.testzip() is None  # sizes and checksums are right
        self.said = json.loads(self.zip.read("perfetto_manifest.json"))["perfetto_manifest"]
        self.files = {one["path"]: one for one in self.said["files"]}
        self.own = json.loads(self.zip.read("rlprof.json"), parse_float=Fraction)
        self.traces = [name for name in self.zip.namelist() if name.startswith("traces/")]

    def packed(self, name: str) -> bytes:
        """Return the bytes of a member as they lie in the file."""
        info = self.zip.getinfo(name)
        begin = info.header_offset + 30 + len(name)
        return self.bytes[begin : begin + info.compress_size]

    def epoch_ns(self, name: str, event: dict[str, Any]) -> Fraction:
        """Say when an event of a member was, by the words of Perfetto's manual."""
        clocks = self.files[name].get("clocks", {"offset_ns": 0})
        own_ns = self.own["rlprof"]["epoch_ns"]
        return own_ns + clocks["offset_ns"] + Fraction(event["ts"]) * 1000


@pytest.fixture
def export(run: RunBuilder, tmp_path: Path) -> Callable[[], Archive]:
    """Export the run, and read what was written."""
    return lambda: Archive(run.export(tmp_path / "out", archive=True))


@pytest.fixture
def export_files(tmp_path: Path) -> Callable[[], Archive]:
    """Export the files in the folder `loose`, and read what was written."""

    def do() -> Archive:
        out = tmp_path / "out"
        out.mkdir()
        files = sorted(path for path in (tmp_path / "loose").rglob("*") if path.is_file())
        hooks = plugins.hooks("exporter", Timeline())
        (file,) = hooks.export_files(files=files, out=out, options={"archive": True})
        return Archive(file)

    return do


def two_ranks(run: RunBuilder) -> list[str]:
    """Two ranks, two windows each, each trace with a base of its own; return the files."""
    files = []
    for rank in (0, 1):
        process = run.process(rank=rank, host=f"node-{rank}")
        process.span("step", "step 2", NOW, NOW + 900_000, step=2)
        for n, window in enumerate((ROLLOUT, UPDATE)):
            process.span("phase", window.phase, NOW + n, NOW + 9, step=2, tokens=7)
            base = (NOW // QUARTER - n - rank) * QUARTER + rank
            ns = NOW + n * 300_000 + rank * 1_001 - base
            op = {"ph": "X", "name": f"op {rank}.{n}", "pid": 42, "tid": 7, "dur": 5}
            event = json.dumps(op)[:-1] + f', "ts": {us(ns)}}}'
            files.append(process.trace(window, [event], base))
    return files


def loose(tmp_path: Path, name: str, content: bytes) -> Path:
    """Write a file that rlprof did not make."""
    file = tmp_path / "loose" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


# What is in it


def test_members_are_the_bytes_of_the_files(run, export) -> None:
    """Nothing is unpacked and packed again: between the head and the tail of gzip, as they lie."""
    files = two_ranks(run)

    archive = export()

    assert len(archive.traces) == len(files) == 4
    for name, file in zip(archive.traces, files, strict=True):
        content = (run.path / file).read_bytes()
        assert archive.packed(name) == content[10:-8]
        assert archive.zip.read(name) == gzip.decompress(content)


def test_loose_files_that_are_not_packed_are_stored(tmp_path, export_files) -> None:
    """A file of JSON is in it byte for byte."""
    events = [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1_790_000_000_000_000.5, "dur": 1}]
    file = loose(tmp_path, "rank-0.json", json.dumps({"traceEvents": events}).encode())

    archive = export_files()

    assert archive.traces == ["traces/rank-0.json"]
    assert archive.packed("traces/rank-0.json") == file.read_bytes()


def test_every_event_stands_at_its_exact_epoch_nanosecond(run, export) -> None:
    """Offsets lay traces with four bases on the clock of the spans, without an error of 1 ns."""
    two_ranks(run)

    archive = export()

    found = {}
    for name in archive.traces:
        (event,) = json.loads(archive.zip.read(name), parse_float=Fraction)["traceEvents"]
        found[event["name"]] = archive.epoch_ns(name, event)
    assert found == {
        f"op {rank}.{n}": NOW + n * 300_000 + rank * 1_001 for rank in (0, 1) for n in (0, 1)
    }
    offsets = [one["clocks"]["offset_ns"] for one in archive.said["files"][1:]]
    assert [type(offset) for offset in offsets] == [int] * 4


def test_clocks_that_were_taken_out_are_taken_out(run, export) -> None:
    """What a fleet has measured of a member's clock is part of its offset."""
    process = run.process()
    process.tell("clock_offset", offset_ns=1_234_567, bound_ns=10, at=NOW)
    process.trace(UPDATE, ['{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 0}'], NOW + 17)

    archive = export()

    plan = of_run(rlprof.read(run.path))
    (trace,) = plan.traces()
    (name,) = archive.traces
    assert archive.epoch_ns(name, {"ts": 0}) == NOW + 17 + trace.shift_ns


def test_own_events_are_those_of_the_timeline(run, export, tmp_path) -> None:
    """Steps, phases, spans and windows are the same, at the same time."""
    two_ranks(run)
    run.process(rank=1, host="node-9").open(UPDATE, NOW)

    archive = export()

    written = Written(run.export(tmp_path / "timeline"))
    mine = [event for event in written.events if event.get("cat", "").startswith("rlprof")]
    keys = ("name", "cat", "pid", "tid", "dur", "args")
    expected = [(written.epoch_ns(e), {k: e.get(k) for k in keys}) for e in mine]
    events = [event for event in archive.own["traceEvents"] if event["ph"] != "M"]
    assert len(events) >= 6
    assert [
        (archive.epoch_ns("rlprof.json", e), {k: e.get(k) for k in keys}) for e in events
    ] == expected


def test_nothing_is_before_time_zero(run, export) -> None:
    """Perfetto drops what is; an hour is left for events before the first window."""
    two_ranks(run)

    archive = export()

    assert archive.own["rlprof"]["epoch_ns"] <= NOW - 3600 * 10**9
    first = min(event["ts"] for event in archive.own["traceEvents"] if event["ph"] != "M")
    assert first >= 3600 * 10**6


# The manifest


def test_the_manifest_is_as_perfettos_manual_says(run, export) -> None:
    """Each field is one of docs/reference/perfetto-manifest.md, of its type; nothing else is."""
    two_ranks(run)

    archive = export()

    text = archive.zip.read("perfetto_manifest.json")
    assert b"".join(text.split()).startswith(b'{"perfetto_manifest"')  # by this it is known
    assert list(archive.said) == ["version", "files", "attributes"]
    assert archive.said["version"] == 1
    own, *others = archive.said["files"]
    assert own == {"path": "rlprof.json"}
    for one in others:
        offset_ns = one["clocks"]["offset_ns"]
        assert one == {
            "path": one["path"],
            "machine": {"name": one["machine"]["name"]},
            "clocks": {"sync_to": {"file": "rlprof.json"}, "offset_ns": offset_ns},
        }
        assert abs(offset_ns) < 2**63
    assert sorted(archive.files) == sorted({*archive.zip.namelist()} - {"perfetto_manifest.json"})
    for key, value in archive.said["attributes"].items():
        assert key.startswith("rlprof.")
        assert isinstance(value, (str, int))


def test_ranks_are_told_apart_and_windows_are_not(run, export) -> None:
    """All windows of a target and tool share their machine, so their tracks."""
    two_ranks(run)

    archive = export()

    machines = [(name, archive.files[name]["machine"]["name"]) for name in archive.traces]
    assert machines == [
        ("traces/actor_0_of_2/torch/step_000002_rollout.json", "actor 0/2 · torch"),
        ("traces/actor_0_of_2/torch/step_000007_update_actor.json", "actor 0/2 · torch"),
        ("traces/actor_1_of_2/torch/step_000002_rollout.json", "actor 1/2 · torch"),
        ("traces/actor_1_of_2/torch/step_000007_update_actor.json", "actor 1/2 · torch"),
    ]


def test_attributes_say_which_run_and_how_far_to_trust_it(run, export) -> None:
    """They are rows of Perfetto's table `metadata`."""
    two_ranks(run)

    archive = export()

    attributes = archive.said["attributes"]
    assert attributes["rlprof.run"] == "a-run"
    assert attributes["rlprof.attempt"] == 1
    assert attributes["rlprof.method"] == "wall clock of each host"
    assert attributes["rlprof.epoch_ns"] == archive.own["rlprof"]["epoch_ns"]
    assert attributes["rlprof.error_ns"] == 2_000
    assert attributes["rlprof.needs"] == "Perfetto 58 or later"
    assert attributes[f"rlprof.clock.{archive.traces[0]}"] == "error 2000 ns: made up"


def test_it_is_a_zip_that_perfetto_reads(run, export) -> None:
    """Version 2.0, no flag (nor that of names in UTF-8), stored or deflated, sizes in front."""
    two_ranks(run)

    archive = export()

    for info in archive.zip.infolist():
        assert (info.extract_version, info.flag_bits) == (20, 0)
        assert info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        version, flags, *_, packed, size, _, extra = struct.unpack_from(
            "<4x5HI2I2H", archive.bytes, info.header_offset
        )
        assert (version, flags, extra) == (20, 0, 0)
        assert (packed, size) == (info.compress_size, info.file_size)


def test_our_member_is_read_first(tmp_path, export_files) -> None:
    """By name, as Perfetto reads them, whatever files are called: its clock is the whole's."""
    for name in ("0.json", "-a.json", "A/.hidden/b.json", "_rlprof.json"):
        loose(tmp_path, name, WHOLE)

    archive = export_files()

    assert min(archive.files) == "rlprof.json"
    assert len(archive.traces) == 4


def test_names_are_plain_short_and_each_there_once(tmp_path, export_files) -> None:
    """No byte beyond ASCII, no part that is hidden, 99 characters at most."""
    names = ["ä.json", "ö.json", "..x/y.json", "a b.json", "a_b.json", "a.json", "a.json.gz"]
    names += [f"{'d' * 90}/{'e' * n}.json" for n in (1, 2, 50)] + [f"{'f' * 86}/g.json"]
    for name in names:
        loose(tmp_path, name, gzip.compress(WHOLE) if name.endswith("gz") else WHOLE)

    archive = export_files()

    assert len(set(archive.traces)) == len(names)
    for name in archive.traces:
        assert name.isascii()
        assert len(name) <= 99
        assert not [part for part in name.split("/") if part.startswith(".") or not part]
    machines = {one["machine"]["name"] for one in archive.said["files"][1:]}
    assert len(machines) == len(names)


def test_the_same_run_gives_the_same_bytes(run, tmp_path) -> None:
    """No time and no user's name of today is in it."""
    two_ranks(run)

    once = run.export(tmp_path / "a", archive=True)
    again = run.export(tmp_path / "b", archive=True)

    assert once.read_bytes() == again.read_bytes()


# What cannot be in it


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is not there"),
        (b"", "is empty"),
        (as_trace([{"ph": "X", "ts": 1}] * 9999, {"epoch_ns": NOW})[:-40], "is cut short, so"),
        (as_trace([{"ph": "X", "ts": 1}], {"epoch_ns": NOW})[:-6] + b"broken", "is damaged: "),
        (as_trace([{"ph": "X", "ts": 1}] * 9999, {"epoch_ns": NOW})[:-6] + b"broken", "is damaged"),
        (gzip.compress(WHOLE[:-3]), "is cut short, so"),
        (gzip.compress(WHOLE.rstrip()) + gzip.compress(b"{"), "is cut short, so"),
        (WHOLE[:-9], "is cut short, so"),
        (b'{"traceEvents": []}', "has no rlprof object"),
        (as_trace([], {"epoch_ns": 8 * 10**18}), "its clock is centuries from any"),
        (as_trace([], {"epoch_ns": 3 - 4 * 10**18}), "its clock is centuries from that"),
    ],
    ids=[
        "gone",
        "empty",
        "cut",
        "checksum",
        "longer",
        "text",
        "split",
        "raw",
        "others",
        "far",
        "apart",
    ],
)
def test_what_perfetto_would_refuse_is_left_out(run, export, caplog, content, reason) -> None:
    """For it would refuse the whole archive; it is told, in the log and in the archive."""
    process = run.process()
    bad = process.artifact(UPDATE, content)
    process.trace(ROLLOUT, [{"ph": "X", "name": "op", "ts": 1}], NOW)

    archive = export()

    assert archive.traces == ["traces/actor_0_of_2/torch/step_000002_rollout.json"]
    assert f"{bad}: {reason}" in caplog.text
    assert archive.said["attributes"][f"rlprof.left_out.{bad}"].startswith(reason)
    (left_out,) = archive.own["rlprof"]["left_out"]
    assert left_out["file"] == bad
    names = [event["name"] for event in archive.own["traceEvents"]]
    assert "left out: torch 7/update_actor" in names


def test_what_does_not_begin_as_json_is_refused(tmp_path) -> None:
    """Perfetto knows a trace by its first bytes, and refuses all for one that it does not know."""
    file = loose(tmp_path, "a.json", b"\xef\xbb\xbf" + WHOLE)
    whole = io.BytesIO()

    with pytest.raises(UnreadableError, match="does not begin as JSON does for Perfetto"):
        _content.move(file, 0, _zip.Zip(whole), "a.json")

    assert whole.getvalue() == b""


@pytest.mark.parametrize("is_packed", [True, False])
def test_where_the_end_does_not_tell_all_is_read(tmp_path, export_files, is_packed) -> None:
    """What other tools write behind the events may be long, and a cut may fall behind a brace."""
    events = b'{"traceEvents": [{"ph": "X", "ts": 1790000000000000, "args": {"a": [1]}}%s'
    files = {
        "long": events % (b'], "file_info": {"a.py": "%s"}}' % (b"x[1], {}\\n" * 9999)),
        "lists": events % b'], "a": [[[1]], [2], {"b": [[3], [4], [5], [6]]}], "c": [7]}',
        "none": b'{"baseTimeNanoseconds": 1790000000000000000, "traceEvents": []}',
        "cut": events % b"",
        "cut too": events % (b', {"ph": "X", "ts": 1790000000000009, "args": {"a": [1]}}' * 9999),
    }
    for name, text in files.items():
        loose(tmp_path, f"{name}.json", gzip.compress(text) if is_packed else text)

    archive = export_files()

    assert archive.traces == ["traces/lists.json", "traces/long.json", "traces/none.json"]


def test_a_file_that_cannot_be_read_is_left_out(
    tmp_path, export_files, monkeypatch, caplog
) -> None:
    """A disk that fails in the midst of a file leaves nothing of it behind."""
    for name in ("a.json", "b.json"):
        loose(tmp_path, name, WHOLE)
    as_text, calls = _content._as_text, []

    def failing(path: Path, file: Any) -> Any:
        calls.append(path)
        if len(calls) == 1:
            yield b"half of it"
            raise OSError(5, "Input/output error")
        return (yield from as_text(path, file))

    monkeypatch.setattr(_content, "_as_text", failing)

    archive = export_files()

    assert archive.traces == ["traces/b.json"]
    assert "a.json: cannot be read: Input/output error" in caplog.text
    assert b"half of it" not in archive.bytes


def test_more_than_a_zip_can_hold_is_left_out(tmp_path, export_files, monkeypatch, caplog) -> None:
    """Perfetto reads no member of more than 4 GB."""
    loose(tmp_path, "a.json", WHOLE * 3)
    loose(tmp_path, "b.json.gz", gzip.compress(WHOLE * 3))
    loose(tmp_path, "c.json", WHOLE)
    monkeypatch.setattr(_content, "LARGEST", 2 * len(WHOLE))

    archive = export_files()

    assert archive.traces == ["traces/c.json"]
    assert caplog.text.count("is more than 4 GB of JSON") == 2


def test_an_array_that_was_cut_is_in_it(tmp_path, export_files) -> None:
    """Perfetto opens Chrome's form that is nothing but events wherever it ends."""
    events = (
        b'[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1790000000000000, "dur": 1},\n{"ph'
    )
    loose(tmp_path, "a.json", events)

    archive = export_files()

    assert archive.zip.read("traces/a.json") == events


# Files of gzip


def test_a_file_of_the_recorded_size_is_not_unpacked(run, export, monkeypatch) -> None:
    """Its run has said that it is whole; to look would take longer than to move it."""
    content = as_trace([{"ph": "X", "name": "op", "ts": 1}], {"epoch_ns": NOW})
    run.process().artifact(UPDATE, content, size=len(content))

    def refuse(*_: object) -> None:
        raise AssertionError("looked")

    monkeypatch.setattr(_content, "_looked_through", refuse)

    archive = export()

    (name,) = archive.traces
    assert archive.packed(name) == content[10:-8]


def test_a_file_of_another_size_is_looked_through(run, export, caplog) -> None:
    """One that was cut when it was copied here has another size than its run says."""
    content = as_trace([{"ph": "X", "name": "op", "ts": n} for n in range(9999)], {"epoch_ns": NOW})
    run.process().artifact(UPDATE, content[:-1000], size=len(content))

    archive = export()

    assert archive.traces == []
    assert "is cut short" in caplog.text


def test_a_file_whose_text_was_counted_is_not_searched(run, export, monkeypatch) -> None:
    """The size at its end is that of its last member: if it is that of all, there is one."""
    head, tail = b'{"rlprof": {"epoch_ns": %d}, "pad": "' % NOW, b'", "traceEvents": [{"ts": 1}]}'
    text = head + b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + tail  # what a search would stop at
    content = gzip.compress(text, 0)
    run.process().artifact(UPDATE, content, size=len(content), text_size=len(text))

    def refuse(*_: object) -> None:
        raise AssertionError("looked")

    monkeypatch.setattr(_content, "_looked_through", refuse)

    archive = export()

    (name,) = archive.traces
    assert archive.packed(name) == content[10:-8]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("is_counted", [True, False])
def test_a_file_of_many_members_becomes_one(run, export, is_known, is_counted) -> None:
    """A ZIP can hold no second member of gzip behind the first; it is packed anew."""
    whole = gzip.decompress(as_trace([{"ph": "X", "name": "op", "ts": 1}] * 99, {"epoch_ns": NOW}))
    pieces = [whole[begin : begin + 500] for begin in range(0, len(whole), 500)]
    content = b"".join(map(gzip.compress, pieces))
    size, text_size = len(content) if is_known else 0, len(whole) if is_counted else None
    run.process().artifact(UPDATE, content, size=size, text_size=text_size)

    archive = export()

    (name,) = archive.traces
    assert archive.zip.read(name) == whole


@pytest.mark.parametrize("at", [0, 9, 70_000, _content._COPIED - 400, _content._COPIED])
def test_bytes_that_look_like_a_member_are_looked_at(run, export, at) -> None:
    """By chance they may stand anywhere, also where two reads meet; the file goes in as it lies."""
    head = b'{"rlprof": {"epoch_ns": %d}, "pad": "' % NOW
    mark = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
    content = gzip.compress(head + b"-" * at + mark + b'", "traceEvents": [{"ts": 1}]}', 0)
    run.process().artifact(UPDATE, content, size=len(content))

    archive = export()

    (name,) = archive.traces
    assert archive.packed(name) == content[10:-8]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("flags", range(32))
def test_any_head_of_gzip_is_passed_over(run, export, flags, is_known) -> None:
    """It may hold more bytes, a name, a comment and a checksum (RFC 1952)."""
    plain = gzip.compress(WHOLE)
    more = (b"\5\0extra" if flags & 4 else b"") + (b"a name\0" if flags & 8 else b"")
    more += (b"a comment\0" if flags & 16 else b"") + (b"hc" if flags & 2 else b"")
    content = plain[:3] + bytes([flags]) + plain[4:10] + more + plain[10:]
    if flags & 2:
        crc = _zip.crc32(content[: 10 + len(more) - 2]) & 0xFFFF
        content = content[: 8 + len(more)] + struct.pack("<H", crc) + content[10 + len(more) :]
    run.process().artifact(UPDATE, content, size=len(content) if is_known else 0)

    archive = export()

    (name,) = archive.traces
    assert archive.packed(name) == plain[10:-8]


def test_what_lies_behind_a_file_of_gzip_is_not_moved(tmp_path, export_files) -> None:
    """Zeros that fill up a block of a disk or a tape are no part of it."""
    content = gzip.compress(WHOLE)
    loose(tmp_path, "a.json.gz", content + bytes(512))

    archive = export_files()

    assert archive.packed("traces/a.json") == content[10:-8]


@pytest.mark.parametrize("size", [1, 40_000, 70_000, 300_000, 1_000_000])
def test_files_of_any_size_are_moved_whole(run, export, size) -> None:
    """Wherever reads end, whether one looks at what is read or not."""
    noise = "".join(f"{(n * 2654435761) % 2**32:08x}" for n in range(size // 4))[: 2 * size]
    process = run.process()
    content = as_trace([{"ph": "X", "name": noise, "ts": 1}], {"epoch_ns": NOW})
    process.artifact(ROLLOUT, content, size=len(content))
    process.artifact(UPDATE, content)

    archive = export()

    assert [archive.packed(name) == content[10:-8] for name in archive.traces] == [True, True]


def test_an_archive_of_more_than_4_gb_has_its_directory_in_zip64(tmp_path) -> None:
    """Any reader finds its members, and in front of them is nothing of ZIP64."""

    def content() -> Any:
        yield b"it is"
        return None

    with (tmp_path / "large.zip").open("wb") as file:
        archive = _zip.Zip(file)
        archive.add("a", content())
        file.seek(5 << 30)  # a hole: it takes no room
        archive.add("b", content())
        archive.end()

    with zipfile.ZipFile(tmp_path / "large.zip") as found:
        assert found.namelist() == ["a", "b"]
        assert found.testzip() is None
        assert found.getinfo("b").header_offset == 5 << 30
        assert found.read("b") == b"it is"


# The command


def test_the_command_writes_the_archive_alone(run, capsys, caplog) -> None:
    """With `--archive` there is no other timeline, and it is said for which Perfetto it is."""
    two_ranks(run)

    code = main(["export", str(run.path), "--to", "timeline", "--archive"])

    out = run.path / "exports"
    assert code == 0
    assert [file.name for file in out.iterdir()] == [NAME]
    clocks, file = capsys.readouterr().out.splitlines()
    assert clocks == "timeline: clocks: wall clock of each host; up to 2.0 µs off its host's clock"
    assert file.startswith(f"timeline: {out / NAME} (")
    assert f"{NAME}: for Perfetto 58 and later; an older one opens it without a word" in caplog.text


def test_help_says_what_older_viewers_show() -> None:
    """Who asks for it is to know."""
    parser = argparse.ArgumentParser()
    Timeline.arguments(parser.add_argument_group("timeline"))

    words = " ".join(parser.format_help().split())

    assert "for Perfetto 58 and later" in words
    assert "older ones open it without a word" in words


def test_times_that_cannot_be_cut_are_told(run, tmp_path, caplog) -> None:
    """Nothing is read, so nothing inside a trace is left out; once is enough to say so."""
    two_ranks(run)
    plan = attrs.evolve(of_run(rlprof.read(run.path)), from_ns=NOW, until_ns=NOW + 1)

    file = write_archive(plan, tmp_path)

    assert len(Archive(file).traces) == 4
    told = [one.getMessage() for one in caplog.records if "--from" in one.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("an archive has whole traces")


def test_nothing_is_told_that_is_not_so(run, export, caplog) -> None:
    """A run that is well has one line: for which Perfetto it is."""
    two_ranks(run)
    caplog.set_level(logging.WARNING)

    export()

    assert [record.getMessage().split(":")[0] for record in caplog.records] == [NAME]


def test_who_interrupts_finds_nothing(run, tmp_path, monkeypatch) -> None:
    """Neither half an archive nor what it was made of; an older one stays."""
    two_ranks(run)
    out = tmp_path / "out"
    before = run.export(out, archive=True).read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_archive, "write_own", interrupted)

    with pytest.raises(KeyboardInterrupt):
        write_archive(of_run(rlprof.read(run.path)), out)

    assert [file.name for file in out.iterdir()] == [NAME]
    assert (out / NAME).read_bytes() == before


def test_a_run_without_traces_is_an_archive_too(run, export) -> None:
    """Of a run that has recorded nothing but spans, those are shown."""
    run.process().span("step", "step 2", NOW, NOW + 9, step=2)

    archive = export()

    assert archive.traces == []
    assert "step 2" in [event["name"] for event in archive.own["traceEvents"]]


# An old engine


@pytest.mark.slow
def test_an_old_engine_opens_it_and_shows_ranks_folded(run, tmp_path) -> None:
    """Perfetto 52 ignores the manifest: the ranks' equal processes are one, times are as they lie.

    This is what the words of the command warn of; should it ever fail, the warning is too old.
    """
    two_ranks(run)

    file = run.export(tmp_path / "out", archive=True)

    found = summary(file)
    assert found.errors == {}
    assert {"op 0.0", "op 0.1", "op 1.0", "op 1.1", "rollout", "step 2"} <= {*found.slice_names}
    ops = query_all(
        file,
        rows="select ts, pid, slice.name from slice join thread_track on track_id = "
        "thread_track.id join thread using (utid) join process using (upid) "
        "where slice.name glob 'op *'",
    )["rows"]
    assert len({row["pid"] for row in ops}) == 1
    times = [int(str(row["ts"])) for row in ops]
    assert max(times) - min(times) > QUARTER // 2  # and they were 300 us apart
