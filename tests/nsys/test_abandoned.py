"""What a launcher that was killed has left, and who may take it away."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from rlprof_nsys import _abandoned
from rlprof_nsys._abandoned import claim, clear_abandoned
from rlprof_nsys._processes import has_tmpdir

CLAIM = """
import sys
from pathlib import Path
from rlprof_nsys._abandoned import claim
claim(Path(sys.argv[1]))
print("claimed", flush=True)
sys.stdin.read()
"""


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """The folder of a launcher, with what nsys leaves in it."""
    folder = tmp_path / "rlprof-nsys-abc"
    (folder / "nvidia").mkdir(parents=True)
    return folder


@pytest.fixture(name="launcher")
def _launcher(folder):
    """A process that has claimed it."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    yield process
    _kill(process)


@pytest.fixture(name="left")
def _left(folder):
    """A process of nsys, as its launcher starts it."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, "TMPDIR": str(folder)})
    while not has_tmpdir(process.pid, str(folder)):  # the kernel shows it a moment after exec
        time.sleep(0.001)
    yield process
    process.kill()
    process.wait()


def _kill(process):
    process.kill()
    process.communicate()


def test_the_folder_of_a_launcher_that_lives_stays(tmp_path, folder, launcher):
    """Its lock is held, whoever looks."""
    clear_abandoned(tmp_path)

    assert launcher.poll() is None
    assert folder.exists()


def test_the_folder_of_a_launcher_that_was_killed_is_removed(tmp_path, folder, launcher):
    """SIGKILL lets go of its lock; what stands beside it stays."""
    (tmp_path / "rlprof-nsys-mine").mkdir()
    _kill(launcher)

    clear_abandoned(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["rlprof-nsys-mine"]


def test_what_nsys_has_to_write_it_writes_first(tmp_path, folder, launcher, left):
    """Processes that were left have time to end; then they are killed, and the folder goes."""
    _kill(launcher)

    clear_abandoned(tmp_path)
    clear_abandoned(tmp_path)
    assert (left.poll(), folder.exists()) == (None, True)
    long_ago = time.time() - _abandoned._PATIENCE_S - 1
    os.utime(folder / "abandoned", (long_ago, long_ago))
    clear_abandoned(tmp_path)

    assert left.wait(10) == -9
    assert not folder.exists()


def test_a_folder_that_nobody_has_claimed_stays(tmp_path, folder):
    """Its launcher is just making it, or has no locks here."""
    clear_abandoned(tmp_path)

    assert folder.exists()


@pytest.mark.parametrize("where", ["", "another-boot pid:[4026531836]"])
def test_a_folder_of_another_host_stays(tmp_path, folder, where):
    """Its lock says nothing here."""
    (folder / "lock").write_text(where)

    clear_abandoned(tmp_path)

    assert folder.exists()


def test_a_link_is_not_followed(tmp_path, folder, launcher):
    """Not even to a folder that is abandoned."""
    _kill(launcher)
    below = tmp_path / "tmp"
    below.mkdir()
    (below / "rlprof-nsys-link").symlink_to(folder)

    clear_abandoned(below)

    assert folder.exists()


def test_a_folder_that_cannot_be_claimed_is_used_all_the_same(tmp_path):
    """Claiming it raises nothing: the program is to start."""
    claim(tmp_path / "gone")

    assert not (tmp_path / "gone").exists()
