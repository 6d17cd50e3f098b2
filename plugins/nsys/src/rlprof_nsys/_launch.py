"""Have nsys launch a stand-in for the program; the stand-in reports the variables that nsys set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof_nsys import _shim
from rlprof_nsys._processes import end_children, is_alive
from rlprof_nsys._program import sentence_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof_nsys._program import Program

START_S = 30.0
"""How long nsys may take to start; training waits for it."""
_CALL_S = 10.0


class LaunchError(Exception):
    """Nsys cannot be used; the program runs unprofiled."""


class EndedError(LaunchError):
    """Nsys ended before it started anything: on a busy host its agent may die at once."""


@attrs.define
class Started:
    """An nsys session that waits for the program."""

    session: str
    environ: Mapping[str, str]
    """The variables that nsys gave its stand-in."""
    cli: subprocess.Popen[bytes]
    program: Program
    _hold: int

    def release(self) -> None:
        """Let the stand-in end, and nsys with it."""
        os.close(self._hold)
        end_launch(self.program, self.session, self.cli, patience_s=_CALL_S)


def start_session(program: Program, session: str, args: Sequence[str], pid: int) -> Started:
    """Have nsys launch the stand-in of *pid*; if that fails, clean up and raise LaunchError."""
    folder = Path(program.folder)
    born, log = folder / "born", folder / "log"
    held, hold = os.pipe()
    shim = [sys.executable, "-I", "-S", _shim.__file__, str(born), str(held)]
    with log.open("wb") as file:
        cli = subprocess.Popen(
            [program.path, "launch", f"--session-new={session}", *args, *shim],
            env={**os.environ, "TMPDIR": program.folder},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            pass_fds=[held],
            start_new_session=True,
        )
    os.close(held)
    end = time.monotonic() + START_S
    while time.monotonic() < end and is_alive(pid) and cli.poll() is None and not born.exists():
        time.sleep(0.01)
    if born.exists():  # whole
        return Started(session, json.loads(born.read_bytes()), cli, program, hold)
    has_ended = cli.poll() is not None
    os.close(hold)
    end_launch(program, session, cli, patience_s=0)  # training waits
    text = log.read_text(encoding="utf-8", errors="replace")
    why = sentence_in(text) or f"it did not answer within {START_S:g} s"
    raise (EndedError if has_ended else LaunchError)(f"{program.path} launch: {why}")


def end_launch(
    program: Program, session: str, cli: subprocess.Popen[bytes], *, patience_s: float
) -> None:
    """End all processes of a launch: wait for them, then shut the session down, then kill."""
    end = time.monotonic() + patience_s
    while cli.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if cli.poll() is None:
        program.call("shutdown", f"--session={session}", "--kill=none", timeout_s=_CALL_S)
    end_children(patience_s=max(1.0, patience_s))
