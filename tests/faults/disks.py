"""Disks that are too small, read-only or do not answer, mounted for one test; root may do that."""

import os
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def tmpfs(path, options):
    """Mount a disk in memory at *path*, made if missing; skip the test where that is forbidden."""
    path.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", options, "tmpfs", path)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@contextmanager
def hung(path):
    """Mount a file system at *path* that never answers: its server, this process, does nothing."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as exc:
        pytest.skip(f"/dev/fuse: {exc.strerror}")
    os.set_inheritable(server, True)  # `mount` asks for the number
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    try:
        run("mount", "-i", "-t", "fuse", "-o", options, "hung", path, pass_fds=(server,))
        yield path
    finally:
        os.close(server)  # who waits is told that nobody is there
        subprocess.run(["umount", "-l", path], check=False, capture_output=True)


def run(*argv, pass_fds=()):
    """Run what only root can; skip the test, saying why, where it is not allowed or not there."""
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True, pass_fds=pass_fds)
    except FileNotFoundError:
        pytest.skip(f"{argv[0]} is not installed here")
    except subprocess.CalledProcessError as exc:
        pytest.skip(f"{' '.join(map(str, argv))}: {exc.stderr.strip()}")
