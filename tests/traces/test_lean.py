"""What is read and written, also without msgspec and isal, as in a lean training image."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from rlprof_traces import TraceText, UnreadableError, _strict, _unpacked, whole

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
    """Return all that a reading gives."""
    text = TraceText(path)
    try:
        batches = list(text.batches(512))
    except UnreadableError as exc:
        return str(exc), text.problems
    return b",".join(batches), text.head, text.tail, text.dropped, text.problems


@pytest.mark.parametrize("text", [*WHOLE, *CUT, *ODD])
def test_each_text_reads_the_same(tmp_path, monkeypatch, text):
    """What is whole, raw or packed, cut or refused by strict readers: it is read alike."""
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


def test_what_was_interrupted_leaves_nothing(tmp_path):
    """An error on the way leaves neither the file nor a draft, and an older file as it was."""
    out = tmp_path / "a.json.gz"
    out.write_bytes(b"older")

    with pytest.raises(KeyboardInterrupt), whole(out) as packed:
        packed.write(TEXT * 50)
        raise KeyboardInterrupt

    assert [file.name for file in tmp_path.iterdir()] == ["a.json.gz"]
    assert out.read_bytes() == b"older"
