"""One try to start the program under nsys: it either runs there once, or does not and never will.

The ticket is a file: who removes it decides. The shim does before the program begins; the launcher
does when it gives a try up. So no try that comes late can start a program a second time.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof_nsys import _shim
from rlprof_nsys._processes import end_all, has_tmpdir
from rlprof_nsys._program import sentence_in
from rlprof_nsys._shared import read_word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof_nsys._program import Program

_TRY_S = 20.0
_CALL_S = 10.0
_FREE = 100
"""Numbers of files that programs do not count on."""


@attrs.define
class Started:
    """A program that runs under nsys."""

    pid: int
    session: str
    cli: subprocess.Popen[bytes]
    folder: Path
    _hold: int

    def open_window(self) -> Path | None:
        """Return the folder of the window that was open when the program ended; None: none was."""
        word = read_word(self.folder)
        return None if word is None else Path(word.folder)

    def release(self) -> None:
        """Let what nsys has launched come to its end."""
        os.close(self._hold)


def start_under_nsys(
    program: Program,
    session: str,
    args: Sequence[str],
    command: Sequence[str],
    *,
    within_s: float,
    is_given_up: Callable[[], object],
) -> tuple[Started | None, str]:
    """Start *command*; or say why it was not, with nothing left of the try."""
    folder = Path(program.folder)
    plan, ticket, started = (folder / f"{session}.{part}" for part in ("plan", "ticket", "pid"))
    ticket.touch()
    held, hold = os.pipe()
    os.set_inheritable(held, True)
    stdio = [_again(number) for number in (0, 1, 2)]
    said = {
        "launcher": os.getpid(),
        "ticket": str(ticket),
        "started": str(started),
        "hold": held,
        "stdio": stdio,
        "tmpdir": os.environ.get("TMPDIR"),
        "mask": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    }
    plan.write_text(json.dumps(said), encoding="utf-8")
    shim = [sys.executable, "-I", "-S", _shim.__file__, str(plan)]
    log = folder / f"{session}.log"
    with log.open("wb") as file:
        cli = subprocess.Popen(
            [program.path, "launch", f"--session-new={session}", *args, *shim, *command],
            env={**os.environ, "TMPDIR": program.folder},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            close_fds=False,  # what the program was to inherit, it inherits
            start_new_session=True,
        )
    for number in (held, *stdio):
        os.close(number)
    end = time.monotonic() + min(within_s, _TRY_S)
    while time.monotonic() < end and not is_given_up():
        pid = _read_pid(started)
        if pid:
            return Started(pid, session, cli, folder, hold), ""
        if cli.poll() is not None:
            break
        time.sleep(0.01)
    try:
        ticket.unlink()
    except FileNotFoundError:  # the program is just being born
        pid = _await_pid(started)
        if pid:
            return Started(pid, session, cli, folder, hold), ""
    os.close(hold)
    _clear(program, session, cli)
    return None, _read_sentence(log) or f"it did not answer within {_TRY_S:g} s"


def _again(number: int) -> int:
    """Duplicate a file for the program; one that is closed is empty there."""
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD, _FREE)
    except OSError:
        empty = os.open(os.devnull, os.O_RDWR)
        os.set_inheritable(empty, True)
        return empty


def _read_pid(file: Path) -> int:
    try:
        return int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0


def _await_pid(file: Path) -> int:
    end = time.monotonic() + _CALL_S
    while not (pid := _read_pid(file)) and time.monotonic() < end:
        time.sleep(0.01)
    return pid


def _clear(program: Program, session: str, cli: subprocess.Popen[bytes]) -> None:
    """Shut the session down, and end what this try has left; the program is not among it."""
    if cli.poll() is None:
        program.call("shutdown", f"--session={session}", "--kill=none", timeout_s=_CALL_S)
        with suppress(ProcessLookupError):
            os.killpg(cli.pid, signal.SIGKILL)
        cli.wait()
    end_all(lambda pid: has_tmpdir(pid, program.folder), within_s=2)


def _read_sentence(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n")
    except OSError:
        return ""
    return sentence_in(text)
