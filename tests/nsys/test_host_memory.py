"""The memory that all nsys of a host share: one lock, and removed where it is spoiled."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest

from rlprof_nsys import _host_memory
from rlprof_nsys._host_memory import free_what_nobody_uses, share_lock
from rlprof_nsys._program import Program

HOLD = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    held = mmap.mmap(file.fileno(), 0)
print("held", flush=True)
sys.stdin.read()
"""
LOCKED = """
import fcntl, sys
held = open(sys.argv[1], "r+")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
LOCK = "nvidia/nsight_systems/SessionManager-2022.4.2.1.lock"


@contextmanager
def another_process(script, file):
    """Run *script* on *file* beside the block."""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield
        process.stdin.close()


@pytest.fixture(name="common")
def _common(tmp_path, monkeypatch):
    """A host's folder for what has no TMPDIR, with nothing in it."""
    common = tmp_path / "tmp"
    common.mkdir()
    monkeypatch.setattr(_host_memory, "_COMMON", common)
    return common


@pytest.fixture(name="program")
def _program(tmp_path):
    """An nsys with a folder of its own, of which only its version is asked."""
    path = tmp_path / "nsys"
    path.write_text("#!/bin/sh\necho NVIDIA Nsight Systems version 2022.4.2.1-df9881f\n")
    path.chmod(0o755)
    (tmp_path / "own").mkdir()
    return Program(str(path), str(tmp_path / "own"))


@pytest.fixture(name="memory")
def _memory(tmp_path, monkeypatch, common, program):
    """Shared memory, as nsys names it, on a host where no nsys runs."""
    share_lock(program)
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(_host_memory, "MEMORY", folder)
    monkeypatch.setattr(_host_memory, "_state", lambda _: "Z")  # another's nsys may run just now
    memory = folder / "NSys-2022.4.2.1"
    memory.write_bytes(b"x" * 4096)
    return memory


def test_the_lock_is_the_one_that_all_use(tmp_path, common, program):
    """And where there is none yet it is made, so that other users can use it, too."""
    share_lock(program)
    (tmp_path / "another").mkdir()
    share_lock(Program(program.path, str(tmp_path / "another")))

    assert (tmp_path / "own" / LOCK).samefile(common / LOCK)
    assert (tmp_path / "another" / LOCK).samefile(common / LOCK)
    modes = [(common / LOCK).parents[up].stat().st_mode & 0o777 for up in (1, 0)]
    assert [*modes, (common / LOCK).stat().st_mode & 0o777] == [0o777, 0o777, 0o666]
    own = [(tmp_path / "own" / LOCK).parents[up].stat().st_mode & 0o777 for up in (1, 0)]
    assert own == [0o777, 0o777]  # else nsys records no ranges


def test_where_the_lock_of_all_cannot_be_had_there_is_one_alone(tmp_path, common, program):
    """The folder of nsys is left as it would find it without us."""
    (common / "nvidia").touch()

    share_lock(program)

    assert list((tmp_path / "own").iterdir()) == []


def test_what_nobody_has_is_removed(memory):
    """Who made it, or changed it, died meanwhile; nobody else ever could begin with it."""
    (memory.parent / "psm_other").touch()

    free_what_nobody_uses()

    assert [path.name for path in memory.parent.iterdir()] == ["psm_other"]


def test_what_a_process_has_stays(memory):
    """A program that is recorded, or an nsys that works."""
    with another_process(HOLD, memory):
        free_what_nobody_uses()
        was_there = memory.exists()
    free_what_nobody_uses()

    assert (was_there, memory.exists()) == (True, False)


def test_while_somebodys_nsys_runs_all_stays(tmp_path, memory, monkeypatch):
    """What it has mapped cannot be seen where it is another user's."""
    monkeypatch.setattr(_host_memory, "_state", lambda _: "S")
    program = tmp_path / "bin/nsys"
    program.parent.mkdir()
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        free_what_nobody_uses()
        was_there = memory.exists()
        process.kill()

    assert was_there


def test_while_somebody_has_its_lock_all_stays(memory, common):
    """An nsys is just beginning with it."""
    with another_process(LOCKED, common / LOCK):
        free_what_nobody_uses()
        was_there = memory.exists()
    free_what_nobody_uses()

    assert (was_there, memory.exists()) == (True, False)


def test_who_has_it_and_gives_up_is_waited_for(memory):
    """Two launches that are stuck would else see each other for ever."""
    brief = HOLD.replace("sys.stdin.read()", "import time; time.sleep(0.5)")
    with subprocess.Popen(
        [sys.executable, "-c", brief, str(memory)], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        free_what_nobody_uses(patience_s=30)
        code = process.wait(30)

    assert (code, memory.exists()) == (0, False)
