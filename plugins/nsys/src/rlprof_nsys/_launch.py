"""Have nsys launch a stand-in for the program; the stand-in reports the variables that nsys set."""

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
from rlprof_nsys._processes import end_children
from rlprof_nsys._program import sentence_in
from rlprof_nsys._shared import read_word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlprof_nsys._program import Program

START_S = 30.0
"""How long nsys may take to start; training waits for it."""
_CALL_S = 10.0
_KIND_S = 1.0
"""How long processes of a failed launch may take to end; training waits for them."""


@attrs.define
class Started:
    """An nsys session that waits for the program."""

    session: str
    environ: Mapping[str, str]
    """The variables that nsys gave its stand-in."""
    cli: subprocess.Popen[bytes]
    folder: Path
    _hold: int

    def has_window(self) -> bool:
        """Whether a window is open."""
        return read_word(self.folder) is not None

    def release(self) -> None:
        """Let the stand-in end."""
        os.close(self._hold)


def start_session(
    program: Program, session: str, args: Sequence[str], is_given_up: Callable[[], object]
) -> tuple[Started | None, str]:
    """Have nsys launch the stand-in; if that fails, clean up and return why."""
    folder = Path(program.folder)
    born, log = folder / "born", folder / "log"
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
    end = time.monotonic() + START_S
    while time.monotonic() < end and not is_given_up():
        environ = _read_environ(born)
        if environ:
            return Started(session, environ, cli, folder, hold), ""
        if cli.poll() is not None:
            break
        time.sleep(0.01)
    os.close(hold)
    _clear(program, session, cli)
    said = _read_sentence(log) or f"it did not answer within {START_S:g} s"
    return None, f"{program.path} launch: {said}"


def _read_environ(file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return {}


def _clear(program: Program, session: str, cli: subprocess.Popen[bytes]) -> None:
    """Shut the session down, and end all processes of the launch."""
    if cli.poll() is None:
        program.call("shutdown", f"--session={session}", "--kill=none", timeout_s=_CALL_S)
        with suppress(ProcessLookupError):
            os.killpg(cli.pid, signal.SIGKILL)
        cli.wait()
    end_children(patience_s=_KIND_S)


def _read_sentence(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n")
    except OSError:
        return ""
    return sentence_in(text)
