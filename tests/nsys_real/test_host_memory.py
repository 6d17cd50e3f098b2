"""Launches at the same moment, and the memory that all nsys of a host share, on the real nsys."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import uuid

import pytest

from rlprof_nsys._arguments import LAUNCHER
from rlprof_nsys._host_memory import MEMORY, free_what_nobody_uses, share_lock
from rlprof_nsys._program import Program

pytestmark = pytest.mark.slow
HALF_MADE = struct.pack("<I", 1)
"""How nsys 2022.4 marks it until it is made; then it is 2."""
TELL = "import os; print(os.environ.get('NSYS_PROFILING_SESSION_ID', 'unprofiled'))"


def test_launches_at_the_same_moment_all_begin(nsys, tmp_path):
    """Each with a TMPDIR of its own; without a lock for all one of two hangs, and those after."""
    codes = []
    for number in range(6):
        folders = [tmp_path / f"{number}-{which}" for which in "ab"]
        for folder in folders:
            folder.mkdir()
            share_lock(Program(nsys, str(folder)))
        both = [
            subprocess.Popen(
                [nsys, "launch", f"--session-new=t{uuid.uuid4().hex[:12]}", "--trace=nvtx", "true"],
                env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.DEVNULL,
            )
            for folder in folders
        ]  # fmt: skip
        codes += [one.wait(60) for one in both]

    assert codes == [0] * 12


def test_memory_that_was_left_half_made_is_made_anew(nsys, tmp_path):
    """Of two programs that find it so both are profiled, some seconds later."""
    memory = MEMORY / f"NSys-{Program(nsys).version().partition('-')[0]}"
    free_what_nobody_uses(patience_s=60)  # the nsys of a test before may be ending
    with memory.open("xb") as file:
        file.write(HALF_MADE.ljust(179_488, b"\0"))
    memory.chmod(0o666)
    try:
        both = [
            subprocess.Popen(
                [*LAUNCHER, f"--nsys={nsys}", "--trace=nvtx", "--", sys.executable, "-c", TELL],
                env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        said = [one.communicate(timeout=120)[0].strip() for one in both]
        assert not memory.exists() or not memory.read_bytes().startswith(HALF_MADE)
    finally:
        if memory.exists() and memory.read_bytes().startswith(HALF_MADE):
            memory.unlink()

    assert "unprofiled" not in said
    assert all(said)
