"""Gzip that is written: the whole file or none, and the same bytes for the same text."""

from __future__ import annotations

import gzip

import pytest

from rlprof_traces import whole

TEXT = b'{"traceEvents": [' + b'{"ph": "X"},' * 5000 + b'{"ph": "M"}]}'


@pytest.mark.parametrize("fast", [False, True])
def test_a_file_has_its_name_when_all_of_it_is_written(tmp_path, fast):
    """While it is being written nothing has the name; the same text gives the same bytes."""
    out = tmp_path / "a.json.gz"

    with whole(out, fast=fast) as packed:
        packed.write(TEXT)
        was_there = out.exists()

    assert was_there is False
    assert gzip.decompress(out.read_bytes()) == TEXT
    assert packed.count == len(TEXT)
    with whole(tmp_path / "b.json.gz", fast=fast) as again:
        again.write(TEXT)
    assert (tmp_path / "b.json.gz").read_bytes() == out.read_bytes()


def test_what_was_interrupted_leaves_nothing(tmp_path):
    """An error on the way leaves neither the file nor a draft, and an older file as it was."""
    out = tmp_path / "a.json.gz"
    out.write_bytes(b"older")

    with pytest.raises(KeyboardInterrupt), whole(out) as packed:
        packed.write(TEXT)
        raise KeyboardInterrupt

    assert [file.name for file in tmp_path.iterdir()] == ["a.json.gz"]
    assert out.read_bytes() == b"older"
