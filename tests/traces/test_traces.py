"""Traces, read and written also without msgspec and isal; clocks of hosts by collectives."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys

import attrs
import pytest

from rlprof_traces import TraceText, UnreadableError, _strict, _unpacked, whole
from rlprof_traces.clocks import Ends, host_clocks

EVENT = '{"ph": "X", "name": "n%d", "pid": 1, "tid": 2, "ts": %d.125, "dur": 3, "args": {"a": [1]}}'
EVENTS = ",\n".join(EVENT % (n, n) for n in range(60))
TEXT = f'{{"schemaVersion": 1, "traceEvents": [{EVENTS}], "traceName": "x"}}'.encode()
WHOLE = (TEXT, gzip.compress(TEXT[:2000]) + gzip.compress(TEXT[2000:]))
CUT = tuple(gzip.compress(TEXT)[:size] for size in (11, 400, -9))
ODD = (
    b"", b"<html>", b'[{"ph": "X", "ts": NaN}]', b'[{"ph": "X", "name": "\xff"}]',
    b'[{"ph": "X",}, {"ph": "i"}]',
    b'[{"ph": "X"}, {"ph": "i"',
)  # fmt: skip


def read(path):
    """Return all that a reader gives."""
    text = TraceText(path)
    try:
        batches = list(text.batches(512))
    except UnreadableError as exc:
        return str(exc), text.problems
    return b",".join(batches), text.head, text.tail, text.dropped, text.problems


@pytest.mark.parametrize("text", [*WHOLE, *CUT, *ODD])
def test_each_text_reads_the_same(tmp_path, monkeypatch, text):
    """Whole, cut and odd texts are read the same with and without msgspec and isal."""
    (tmp_path / "trace").write_bytes(text)
    fast = read(tmp_path / "trace")
    monkeypatch.setattr(_strict, "_VALUE", None)
    monkeypatch.setattr(_unpacked, "_member", _unpacked._Zlib)
    monkeypatch.setattr(_unpacked, "_ERROR", _unpacked.zlib.error)

    assert read(tmp_path / "trace") == fast
    assert text not in WHOLE or fast[3:] == (0, [])


@pytest.mark.slow
def test_neither_is_imported_where_it_is_not_installed(tmp_path):
    """The package imports, reads and writes with the standard library alone."""
    code = (
        "import sys; sys.modules['msgspec'] = sys.modules['isal'] = None\n"
        "from pathlib import Path\n"
        "from rlprof_traces import TraceText, whole\n"
        f"path = Path({str(tmp_path / 'a.gz')!r})\n"
        'with whole(path, fast=True) as packed: packed.write(b\'[{"ph": "X"}]\')\n'
        "print(*TraceText(path).batches())"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.split("\n")[0] == 'b\'{"ph": "X"}\''


def test_an_interrupted_write_leaves_nothing(tmp_path):
    """A write that is interrupted leaves no draft, and an older file stays as it was."""
    out = tmp_path / "a.json.gz"
    out.write_bytes(b"older")

    with pytest.raises(KeyboardInterrupt), whole(out) as packed:
        packed.write(TEXT * 50)
        raise KeyboardInterrupt

    assert [file.name for file in tmp_path.iterdir()] == ["a.json.gz"]
    assert out.read_bytes() == b"older"


# Clocks of hosts by the ends of their collectives: found to within the spread, or not claimed


START = 1_790_857_026_000_000_000
MS = 1_000_000
HOSTS = [f"host-{n}" for n in range(8)]


def window(ahead: list[int], start: int = 0, hosts: list[str] = HOSTS) -> list[Ends]:
    """Let two ranks of each host, whose clock is *ahead*, meet 40 times; one in twenty is late."""
    rng, found = random.Random(start), []  # noqa: S311 -- the same in each run
    for host, off in [*zip(hosts, ahead, strict=True)] * 2:
        meetings = []
        for n in range(40):
            late = round(rng.expovariate(1 / 50_000)) + 3 * MS * (rng.random() < 0.05)
            end, dur = START + start + n * 10 * MS + late + off, rng.randint(300_000, 4 * MS)
            meetings.append(("gloo:all_reduce", end, dur + late))
        found.append(Ends(host, start, meetings))
    return found


def test_a_clock_that_wanders_is_followed_from_window_to_window() -> None:
    """A clock that wanders is interpolated between windows, and times keep their order."""
    traces = []
    for n, ahead in enumerate((0, 20 * MS, -10 * MS)):
        traces += window([0, ahead], n * 600_000 * MS, HOSTS[:2])

    (clock,) = host_clocks(traces, HOSTS)

    assert clock.on_reference(START + 300_000 * MS) - START - 300_000 * MS == pytest.approx(
        -10 * MS, abs=100_000
    )
    times = range(START, START + 1_800_000 * MS, 1_000 * MS)
    moved = [clock.on_reference(at) for at in times]
    assert sorted(moved) == moved


def test_hosts_that_meet_through_another_are_on_one_clock() -> None:
    """Hosts that meet only through a third host are put on one clock."""
    first = window([-3_000 * MS, 2_000 * MS], 0, HOSTS[:2])
    second = window([2_000 * MS, 4_500 * MS], 1, HOSTS[1:3])

    clocks = host_clocks([*first, *second], HOSTS)

    assert [(clock.host, clock.reference) for clock in clocks] == [
        ("host-1", "host-0"), ("host-2", "host-0"),
    ]  # fmt: skip
    off = clocks[1].on_reference(START + 4_500 * MS) - (START - 3_000 * MS)
    assert abs(off) <= clocks[1].spread_ns


def test_a_trace_that_was_cut_is_not_matched_with_whole_ones() -> None:
    """A trace that lacks a collective is not matched, since its n-th is another one."""
    cut = [
        attrs.evolve(one, meetings=one.meetings[1:]) if one.host == "host-1" else one
        for one in window([0] * 8)
    ]

    assert [clock.host for clock in host_clocks(cut, HOSTS)] == HOSTS[2:]
