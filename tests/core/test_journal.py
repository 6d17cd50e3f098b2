"""The JSON lines file: every line is strict JSON, and disk errors lose no line."""

import errno
import json
import os
from pathlib import Path

import pytest

from rlprof.rundir import Journal, as_line
from rlprof_run._lines import read_lines
from tests.cases import cases, refused


@cases(
    "value, expected",
    ([1.5, float("-inf")], [1.5, "-inf"]),
    ({("a", 1): 2, None: 3, 4: 5, 1.5: 6}, {"('a', 1)": 2, "None": 3, "4": 5, "1.5": 6}),
    ("half \ud800 a pair", "half \\ud800 a pair"),
    ({1}, "{1}"),
    ((1, Path("/a/b")), [1, "/a/b"]),
)
def test_values_json_cannot_hold_become_text(value, expected):
    """A value that JSON cannot hold becomes its text in a line of strict JSON."""
    line = as_line({"value": value, "next": 1})

    record = json.loads(line.decode("ascii"), parse_constant=pytest.fail)
    json.dumps(record, ensure_ascii=False).encode("utf-8")  # raises for half a surrogate pair
    assert (line[-1:], line.count(b"\n")) == (b"\n", 1)
    assert {"value": expected, "next": 1} == record


LINES = [b"first\n", b"the second\n", b"3\n"]


@pytest.fixture(name="file")
def _file(tmp_path):
    return tmp_path / "manifest" / "process.jsonl"


class Disk:
    """Stands in for `os.write`; takes 7 bytes per call, and *free* bytes in all."""

    def __init__(self, monkeypatch, *, free):
        self.free, self.write = free, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, fd, data):
        if not self.free:
            raise OSError(errno.ENOSPC, "No space left on device")
        size = min(len(data), self.free, 7)
        self.free -= size
        return self.write(fd, bytes(data[:size]))


@pytest.mark.parametrize("free", [0, 6, 8])
def test_a_write_to_a_full_disk_is_completed_later(file, monkeypatch, free):
    """After a full disk, the next write continues at the first byte that was refused."""
    whole = b"".join(LINES)
    disk = Disk(monkeypatch, free=free)
    journal = Journal(file)

    assert "No space left" in refused(OSError, journal.write, LINES)
    waiting, written = len(journal), file.read_bytes()
    assert "No space left" in refused(OSError, journal.write, [b"more\n"])
    disk.free = 1 << 30
    journal.write([])

    assert (len(whole) - free, whole[:free]) == (waiting, written)
    assert (0, whole + b"more\n") == (len(journal), file.read_bytes())


def test_lines_wait_for_a_folder_that_cannot_be_made(tmp_path):
    """Lines wait until the folder of their file can be made."""
    (tmp_path / "manifest").write_text("in the way")
    journal = Journal(tmp_path / "manifest" / "process.jsonl")

    assert "File exists" in refused(OSError, journal.write, LINES)
    (tmp_path / "manifest").unlink()
    journal.write([])

    assert b"".join(LINES) == (tmp_path / "manifest" / "process.jsonl").read_bytes()


def test_a_removed_file_is_not_created_again(file):
    """A journal whose file and descriptor are gone keeps its lines and creates no new file."""
    journal = Journal(file)
    journal.write(LINES[:1])
    os.close(journal._fd)
    file.unlink()

    refused(FileNotFoundError, journal.write, LINES[1:])

    assert len(journal) == len(b"".join(LINES[1:]))
    assert not file.exists()


def read(file):
    problems: list[str] = []
    return list(read_lines(file, problems)), problems


@cases(
    "content, problems",
    (b'{"a":1}\n{"b":2}\n', []),
    (b'{"a":1}\n{"b":2}', []),
    (b'{"a":1}\n{"b":2}\n{"c":', ["manifest/process.jsonl: 1 cut line skipped"]),
    (b'{"x{"a":1}\n{"a":1}\n{"b":2}\n', ["manifest/process.jsonl: 1 cut line skipped"]),
    (b'{"a":1}\n\0\0\0\n\xff\n{"b":2}\n', ["manifest/process.jsonl: 2 cut lines skipped"]),
)
def test_lines_that_are_no_records_are_skipped_and_counted(file, content, problems):
    """Lines that a crash or a bad disk damaged are skipped and counted; all records are read."""
    file.parent.mkdir()
    file.write_bytes(content)

    assert ([{"a": 1}, {"b": 2}], problems) == read(file)
