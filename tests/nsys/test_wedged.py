"""Shared memory of nsys that hangs all others on the host is removed where nobody needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlprof_nsys import _wedged
from rlprof_nsys._wedged import free_what_nobody_uses

HOLD = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    held = mmap.mmap(file.fileno(), 0)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(name="file")
def _file(tmp_path):
    """Shared memory, as nsys names it, on a host where no nsys runs."""
    file = tmp_path / "NSys-2022.4.2.1"
    file.write_bytes(b"x" * 4096)
    return file


def test_what_nobody_has_is_removed(tmp_path, file, monkeypatch):
    """Who held its lock is dead, so nobody else will ever have it."""
    (tmp_path / "psm_other").touch()
    monkeypatch.setattr(_wedged, "_state", lambda _: "Z")  # another test's nsys may run just now

    assert free_what_nobody_uses(tmp_path) == [str(file)]
    assert [path.name for path in tmp_path.iterdir()] == ["psm_other"]


def test_what_a_process_has_stays(tmp_path, file, monkeypatch):
    """A program that is recorded, or an nsys that works."""
    monkeypatch.setattr(_wedged, "_state", lambda _: "Z")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        while_held = free_what_nobody_uses(tmp_path)
        process.stdin.close()

    assert while_held == []
    assert free_what_nobody_uses(tmp_path) == [str(file)]


def test_while_somebodys_nsys_runs_all_stays(tmp_path, file):
    """What it has mapped cannot be seen where it is another user's."""
    program = tmp_path / "nsys"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        while_it_runs = free_what_nobody_uses(tmp_path)
        process.kill()

    assert while_it_runs == []
    assert file.exists()
