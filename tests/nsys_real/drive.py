"""A program under `nsys launch`, driven from a test, without code of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import attrs

QUIET = ("--sample=none", "--cpuctxsw=none")


@attrs.define(eq=False)
class Launched:
    """A program under `nsys launch`: it reads a line for each thing to do and answers with one."""

    nsys: str
    session: str
    child: subprocess.Popen
    env: dict[str, str]

    def tell(self, line):
        """Tell the program to do something, and return what it answers."""
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def start(self, report, timeout_s=60):
        """Open a window that will be *report*.

        `nsys start` returns up to a few ms before the program's ranges are seen, now and then.
        """
        self._call(timeout_s, "start", *QUIET, "--force-overwrite=true", "-o", str(report))
        time.sleep(0.1)

    def stop(self, timeout_s=60):
        """Close the window; its report is there afterwards."""
        self._call(timeout_s, "stop")

    def _call(self, timeout_s, verb, *argv):
        argv = [self.nsys, verb, f"--session={self.session}", *argv]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def launched(nsys, script, folder, *, trace="nvtx", python=sys.executable):
    """Run the program *script* under *nsys*; it says `ready` first, and ends at end of file."""
    env = {**os.environ, "TMPDIR": str(folder)}
    session = f"t{uuid.uuid4().hex[:12]}"
    argv = [nsys, "launch", f"--session-new={session}", f"--trace={trace}", python, str(script)]
    pipe = subprocess.PIPE
    child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, text=True)
    try:
        assert child.stdout.readline().strip() == "ready"
        yield Launched(nsys, session, child, env)
    finally:
        try:
            child.communicate(timeout=60)
        finally:
            child.kill()
