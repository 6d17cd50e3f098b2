"""Waits for other threads and processes, and finds processes that are left."""

import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

BOUND_S = 120
"""The longest that anything may take on a busy machine."""


def wait_until(is_so, what="it", bound_s=BOUND_S):
    """Return the result of *is_so* once it is true; fail after *bound_s*."""
    deadline = time.monotonic() + bound_s
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"{what}: not within {bound_s} s"
        time.sleep(0.02)
    return found


def python(*words, **how):
    """Run Python with *words* to its end; return the result with its output as text."""
    argv = [sys.executable, *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, **{"timeout": 300, **how})


def processes(*words, env=""):
    """List the processes with *words* in their command line and *env* in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended, or is another user's
            line, given = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            if all(word.encode() in line for word in words) and env.encode() in given:
                found.append(int(folder.name))
    return found


class Terminal:
    """`rlprof` in its own terminal."""

    def __init__(self, *words, env=None):
        self.fd, theirs = pty.openpty()
        argv = [sys.executable, "-m", "rlprof", *map(str, words)]
        its = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "env": env}
        self.process = subprocess.Popen(argv, start_new_session=True, **its)
        os.close(theirs)
        self.text = ""

    def until(self, words):
        deadline = time.monotonic() + 60
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            self.text += self._read()

    def rest(self):
        while piece := self._read():
            self.text += piece
        os.close(self.fd)
        return self.process.wait(60)

    def _read(self):
        try:
            return os.read(self.fd, 65536).decode()
        except OSError:  # it has ended
            return ""
