"""The file of JSON lines: strict whatever is written, whole whatever the disk refuses."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof.rundir import Journal, as_line
from rlprof_run._lines import read_lines

PROPERTY = settings(max_examples=200, deadline=None)


class Rude:
    """Cannot say itself."""

    def __str__(self):
        raise RuntimeError


def strict(line: bytes):
    """Read *line* as RFC 8259 and its strictest readers do."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1

    def refuse(constant):
        raise AssertionError(constant)

    record = json.loads(line.decode("ascii"), parse_constant=refuse)
    json.dumps(record, ensure_ascii=False).encode("utf-8")  # raises for half a surrogate pair
    return record


def cyclic():
    """Make a list and a dict that hold each other."""
    made = {"list": [1]}
    made["list"].append(made)
    return made


def nested(depth):
    """Nest lists."""
    made: list = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        ([1.5, float("-inf")], [1.5, "-inf"]),
        ({("a", 1): 2, None: 3, 4: 5, 1.5: 6}, {"('a', 1)": 2, "None": 3, "4": 5, "1.5": 6}),
        ({float("nan"): 1}, {"nan": 1}),
        ("half \ud800 a pair", "half \\ud800 a pair"),
        ({"\udcff": "a 😀 b"}, {"\\udcff": "a 😀 b"}),
        ("\u2028 \x00 \x7f \r\n", "\u2028 \x00 \x7f \r\n"),
        ({1}, "{1}"),
        (b"\xff\n", "b'\\xff\\n'"),
        ((1, Path("/a/b")), [1, "/a/b"]),
        ([Rude(), {Rude(): 1}], ["<Rude>", {"<Rude>": 1}]),
        pytest.param(10**5000, "<int>", id="long"),
        (cyclic(), {"list": [1, "{'list': [1, {...}]}"]}),
        ({"shared": [[]] * 2, ("odd",): 1}, {"shared": [[], []], "('odd',)": 1}),
    ],
)
def test_what_json_cannot_hold_becomes_its_text(value, expected):
    """Any value makes a line that strict readers take, and it says what the value was."""
    record = strict(as_line({"value": value, "next": 1}))

    assert {"value": expected, "next": 1} == record


@pytest.mark.parametrize("depth", [60, 100_000])
def test_deep_nesting_is_cut_not_refused(depth):
    """A record keeps its other fields, however deep one of them goes."""
    record = strict(as_line({"deep": nested(depth), "odd": {1}, "nan": float("nan")}))

    assert (record["odd"], record["nan"]) == ("{1}", "nan")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
KEYS = (
    st.text(st.characters())
    | st.none()
    | st.floats()
    | st.binary(max_size=4)
    | st.tuples(st.integers())
)
ANY = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(max_size=8)
    | st.complex_numbers() | st.frozensets(st.integers(), max_size=3) | st.builds(Rude),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), PLAIN, max_size=5))
@PROPERTY
def test_what_json_can_hold_comes_back(record):
    """Plain data are read as they were written."""
    assert record == strict(as_line(record))


@pytest.mark.slow
@given(st.dictionaries(KEYS, ANY, max_size=5))
@PROPERTY
def test_every_record_is_a_strict_line(record):
    """Nothing that can be put into a dict breaks the file."""
    assert isinstance(strict(as_line(record)), dict)


LINES = [b"first\n", b"the second\n", b"3\n"]


@pytest.fixture(name="file")
def _file(tmp_path):
    return tmp_path / "manifest" / "process.jsonl"


class Disk:
    """Stands in for `os.write`; takes so many bytes at once, and so many in all."""

    def __init__(self, monkeypatch, *, free, at_once=1 << 30):
        self.free, self.at_once, self.write = free, at_once, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, fd, data):
        if not self.free:
            raise OSError(errno.ENOSPC, "No space left on device")
        size = min(len(data), self.free, self.at_once)
        self.free -= size
        return self.write(fd, bytes(data[:size]))


def test_the_file_is_made_by_the_first_line(file):
    """Where nothing was said there is no file, and no folder for it."""
    journal = Journal(file)

    journal.write([])
    before = file.parent.exists()
    journal.write(LINES)
    journal.close()

    assert not before
    assert b"".join(LINES) == file.read_bytes()


def test_a_file_that_is_there_is_appended_to(file):
    """Nothing that was written is ever overwritten."""
    for line in LINES:
        journal = Journal(file)
        journal.write([line])
        journal.close()

    assert b"".join(LINES) == file.read_bytes()


def test_many_lines_are_one_call(file, monkeypatch):
    """A hundred lines cost the run folder one write."""
    sizes = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: sizes.append(len(data)) or write(fd, data))

    Journal(file).write([b"line\n"] * 100)

    assert sizes == [500]


@pytest.mark.parametrize("at_once", [1, 7])
def test_short_writes_are_gone_on_with(file, monkeypatch, at_once):
    """A disk that takes a few bytes at a time gets them all, once each."""
    Disk(monkeypatch, free=1 << 30, at_once=at_once)

    Journal(file).write(LINES)

    assert b"".join(LINES) == file.read_bytes()


@pytest.mark.parametrize("free", range(len(b"".join(LINES))))
def test_what_a_full_disk_refuses_is_written_later(file, monkeypatch, free):
    """Wherever a disk fills up, the next call goes on at that very byte."""
    whole = b"".join(LINES)
    disk = Disk(monkeypatch, free=free)
    journal = Journal(file)

    with pytest.raises(OSError, match="No space left"):
        journal.write(LINES)
    waiting, written = len(journal), file.read_bytes()
    with pytest.raises(OSError, match="No space left"):
        journal.write([b"more\n"])
    disk.free = 1 << 30
    journal.write([])

    assert (len(whole) - free, whole[:free]) == (waiting, written)
    assert (0, whole + b"more\n") == (len(journal), file.read_bytes())


def test_a_folder_that_cannot_be_made_keeps_the_lines(tmp_path):
    """Lines wait for a run folder that is not there yet."""
    (tmp_path / "manifest").write_text("in the way")
    journal = Journal(tmp_path / "manifest" / "process.jsonl")

    with pytest.raises(OSError, match="File exists"):
        journal.write(LINES)
    (tmp_path / "manifest").unlink()
    journal.write([])

    assert b"".join(LINES) == (tmp_path / "manifest" / "process.jsonl").read_bytes()


def test_a_line_that_cannot_be_made_loses_none_before_it(file):
    """Lines are taken one by one; those before a failure are kept."""

    def lines():
        yield LINES[0]
        raise RuntimeError

    journal = Journal(file)
    with pytest.raises(RuntimeError):
        journal.write(lines())
    journal.write(LINES[1:])

    assert b"".join(LINES) == file.read_bytes()


FILL = """
import resource, signal, sys
from pathlib import Path
from rlprof.rundir import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]))
refused = 0
for limit in (1000, 1003, 2500, 10_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        journal.write(b"%05d\\n" % number for number in range(refused * 300, refused * 300 + 300))
    except OSError as exc:
        refused += 1
        print(exc.errno, len(journal))
print(refused, len(journal))
"""


@pytest.mark.slow
def test_a_real_disk_limit_loses_nothing_and_repeats_nothing(file):
    """A file that may not grow is gone on with when it may, at the byte where it was cut."""
    argv = [sys.executable, "-c", FILL, str(file)]

    done = subprocess.run(argv, capture_output=True, text=True, check=True)

    refusals = [f"{errno.EFBIG} 800", f"{errno.EFBIG} 2597", f"{errno.EFBIG} 2900", "3 0"]
    assert refusals == done.stdout.splitlines()
    assert b"".join(b"%05d\n" % number for number in range(1200)) == file.read_bytes()


def test_closing_is_repeatable(file):
    """A journal may be closed before it was used, twice, and be written to again."""
    journal = Journal(file)

    journal.close()
    journal.write(LINES[:1])
    journal.close()
    journal.close()
    journal.write(LINES[1:])
    journal.close()

    assert b"".join(LINES) == file.read_bytes()


# failures.md: closed-descriptors
@pytest.mark.parametrize("taken", [True, False])
def test_a_descriptor_that_was_taken_is_left_alone(file, tmp_path, taken):
    """Closed by somebody else, perhaps another file by now: lines go where they belong."""
    journal = Journal(file)
    journal.write(LINES[:1])
    fd = journal._fd
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    if taken:
        os.dup2(other, fd)
    else:
        os.close(fd)

    journal.write(LINES[1:])
    journal.close()

    assert b"".join(LINES) == file.read_bytes()
    assert os.fstat(other).st_size == 0
    if taken:
        assert os.fstat(fd) == os.fstat(other)
        os.close(fd)
    os.close(other)


# failures.md: closed-descriptors
def test_a_descriptor_that_was_taken_is_not_closed(file, tmp_path):
    """Also where nothing more is written."""
    journal = Journal(file)
    journal.write(LINES)
    fd = journal._fd
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    os.dup2(other, fd)

    journal.close()

    assert os.fstat(fd) == os.fstat(other)
    os.close(fd)
    os.close(other)


def test_a_file_that_was_removed_is_not_made_anew(file):
    """With its descriptor lost, too, there is nothing to go on with: the lines wait."""
    journal = Journal(file)
    journal.write(LINES[:1])
    os.close(journal._fd)
    file.unlink()

    with pytest.raises(FileNotFoundError):
        journal.write(LINES[1:])

    assert len(journal) == len(b"".join(LINES[1:]))
    assert not file.exists()


def read(file):
    """Read *file*; return its records and the problems."""
    problems: list[str] = []
    return list(read_lines(file, problems)), problems


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (b'{"a":1}\n{"b":2}\n', []),
        (b'{"a":1}\n{"b":2}', []),
        (b'{"a":1}\n\n  \n{"b":2}\n', []),
        (b'{"a":1}\n{"b":2}\n{"c":', ["manifest/process.jsonl: 1 cut line skipped"]),
        (b'{"x{"a":1}\n{"a":1}\n{"b":2}\n', ["manifest/process.jsonl: 1 cut line skipped"]),
        (b'{"a":1}\n\0\0\0\n\xff\n{"b":2}\n', ["manifest/process.jsonl: 2 cut lines skipped"]),
        (b'{"a":1}\n[1]\nnull\n7\n{"b":2}', ["manifest/process.jsonl: 3 cut lines skipped"]),
        (
            b'{"a":1}\n' + b"[" * 100_000 + b'\n{"b":2}\n',
            ["manifest/process.jsonl: 1 cut line skipped"],
        ),
    ],
)
def test_whatever_is_no_record_is_skipped_and_counted(file, content, problems):
    """The records around what a crash or a bad disk left are all read."""
    file.parent.mkdir()
    file.write_bytes(content)

    assert ([{"a": 1}, {"b": 2}], problems) == read(file)


def test_a_file_that_is_not_there_holds_nothing(file):
    """A process that wrote no spans has no file of them, which is no problem."""
    assert read(file) == ([], [])


def test_a_file_that_cannot_be_read_is_a_problem(file):
    """What cannot be opened is named, and nothing is raised."""
    file.mkdir(parents=True)

    expected = "manifest/process.jsonl: cannot be read: is a folder, not a file"
    assert ([], [expected]) == read(file)
