"""Disks that are too small, read-only or hung, mounted for one test; this takes root."""

import os
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def tmpfs(path, options):
    """Mount a disk in memory at *path*; skip the test where that is not allowed."""
    path.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", options, "tmpfs", path)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@contextmanager
def hung(path):
    """Mount a FUSE file system at *path* whose server, this process, never answers."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as exc:
        pytest.skip(f"/dev/fuse: {exc.strerror}")
    os.set_inheritable(server, True)  # `mount` needs the descriptor
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    try:
        run("mount", "-i", "-t", "fuse", "-o", options, "hung", path, pass_fds=(server,))
        yield path
    finally:
        os.close(server)  # calls that wait fail now
        subprocess.run(["umount", "-l", path], check=False, capture_output=True)


def run(*argv, pass_fds=()):
    """Run a command that takes root; skip the test where it is not allowed or not installed."""
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True, pass_fds=pass_fds)
    except FileNotFoundError:
        pytest.skip(f"{argv[0]} is not installed here")
    except subprocess.CalledProcessError as exc:
        pytest.skip(f"{' '.join(map(str, argv))}: {exc.stderr.strip()}")
