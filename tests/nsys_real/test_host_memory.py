"""Launches at the same moment, on the real nsys."""

from __future__ import annotations

import os
import subprocess
import uuid

import pytest

from rlprof_nsys._host_memory import share_lock
from rlprof_nsys._program import Program

pytestmark = pytest.mark.slow


def test_launches_at_the_same_moment_all_begin(nsys, tmp_path):
    """Each with a TMPDIR of its own; without a lock for all one of two hangs, and those after."""
    codes = []
    for number in range(3):
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

    assert codes == [0] * 6
