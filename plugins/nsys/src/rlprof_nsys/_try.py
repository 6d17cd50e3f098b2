"""One try to have nsys ready for the program: it launches a stand-in, which tells what it got."""

from __future__ import annotations

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
from rlprof_nsys._host_memory import free_what_nobody_uses
from rlprof_nsys._processes import end_all, has_tmpdir
from rlprof_nsys._program import sentence_in
from rlprof_nsys._shared import read_word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlprof_nsys._program import Program

_TRY_S = 20.0
_CALL_S = 10.0
_KIND_S = 1.0
"""How long what is left of a try may take to end; training waits meanwhile."""
_STUCK_S = 5.0
"""A try that fails after so long may be stuck where others are, too (after 10 s or never)."""
_OTHERS_S = 5.0
"""How long others that are may take to give up."""


@attrs.define
class Started:
    """A session of nsys that waits for the program."""

    session: str
    environ: Mapping[str, str]
    """What nsys has launched its stand-in with; a character is a byte."""
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


def start_session(
    program: Program,
    session: str,
    args: Sequence[str],
    *,
    within_s: float,
    is_given_up: Callable[[], object],
) -> tuple[Started | None, str]:
    """Have nsys launch the stand-in; or say why it has not, with nothing left of the try."""
    folder = Path(program.folder)
    born, log = folder / f"{session}.born", folder / f"{session}.log"
    held, hold = os.pipe()
    shim = [sys.executable, "-I", "-S", _shim.__file__, str(born), str(held)]
    try:
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
    except OSError as exc:
        os.close(hold)
        return None, f"{program.path} launch: {exc.strerror or exc}"
    finally:
        os.close(held)
    began = time.monotonic()
    end = began + min(within_s, _TRY_S)
    while time.monotonic() < end and not is_given_up():
        environ = _read_environ(born)
        if environ:
            return Started(session, environ, cli, folder, hold), ""
        if cli.poll() is not None:
            break
        time.sleep(0.01)
    os.close(hold)
    _clear(program, session, cli)
    is_stuck = time.monotonic() - began >= _STUCK_S
    free_what_nobody_uses(patience_s=_OTHERS_S if is_stuck else 0.0)
    said = _read_sentence(log)
    return None, said or f"it did not answer within {_TRY_S:g} s"


def _read_environ(file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return {}


def _clear(program: Program, session: str, cli: subprocess.Popen[bytes]) -> None:
    """Shut the session down, and end what this try has left."""
    if cli.poll() is None:
        program.call("shutdown", f"--session={session}", "--kill=none", timeout_s=_CALL_S)
        with suppress(ProcessLookupError):
            os.killpg(cli.pid, signal.SIGKILL)
        cli.wait()
    end_all(lambda pid: has_tmpdir(pid, program.folder), patience_s=_KIND_S, within_s=2)


def _read_sentence(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n")
    except OSError:
        return ""
    return sentence_in(text)
