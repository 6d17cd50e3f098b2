"""The launcher, `argv_prefix` of a launch: it executes the command after it under nsys.

nsys records a process by the variables it starts with. So a separate process, the keeper, has nsys
launch a stand-in, and the launcher executes the program with the stand-in's variables. The program
keeps the pid, parent, process group, files and signals that it would have without nsys. If nsys
cannot be used, the launcher prints why and executes the program unprofiled.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NoReturn

from rlprof_nsys._arguments import LAUNCHER, MARK, Asked, Mark
from rlprof_nsys._keeper import keep
from rlprof_nsys._launch import START_S

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANSWER_S = START_S + 30
"""Longer than the keeper takes to give up and report why."""
_NEEDED = (
    "HOME", "HOSTNAME", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOGNAME",
    "NVTX_*", "PATH", "PWD", "PYTHON*", "RLPROF_*", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""Variables that the program keeps even if `env` does not name them."""


def main(argv: list[str]) -> NoReturn:
    """Start the keeper, and execute the command under nsys."""
    asked, command = Asked.read(argv[0]), argv[1:]
    given = dict(os.environ)
    chosen = _choose_variables(given, asked.env)
    if chosen != given:  # restart: nsys reads the variables that its ancestors started with
        os.execve(sys.executable, [*LAUNCHER, *argv], chosen)  # noqa: S606
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    environ, why = _have_kept(asked)
    if why:
        environ = {MARK: Mark(why=why).text()}
        with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
            sys.stderr.write(f"rlprof-nsys: {why}; the program runs unprofiled\n")
            sys.stderr.flush()
    _become(command, {**given, **environ})


def _choose_variables(
    given: Mapping[str, str], allowed: tuple[str, ...] | None
) -> Mapping[str, str]:
    """Leave out variables that a report must not hold."""
    if allowed is None:
        return given
    return {
        name: value
        for name, value in given.items()
        if any(fnmatchcase(name, one) for one in (*_NEEDED, *allowed))
    }


def _have_kept(asked: Asked) -> tuple[Mapping[str, str], str]:
    """Start the keeper; return the variables for the program, or why there are none."""
    session = os.environ.get("NSYS_PROFILING_SESSION_ID")
    if session:
        return {}, f"the process is already in nsys session {session}; start it with one launcher"
    try:
        pid = os.getpid()
        reader, writer = os.pipe()
        child = os.fork()
    except OSError as exc:
        return {}, f"cannot start the keeper of nsys: {exc.strerror or exc}"
    if child == 0:
        _begin_to_keep(asked, writer, pid)
    os.close(writer)
    os.waitpid(child, 0)
    if not select.select([reader], [], [], _ANSWER_S)[0]:
        return {}, f"nsys was not ready within {_ANSWER_S:g} s"
    try:
        with os.fdopen(reader, "rb") as pipe:  # it ends with the keeper, or once it has answered
            found = json.load(pipe)
    except ValueError:
        return {}, "the keeper of nsys has ended"
    return found.get("environ", {}), found.get("why", "")


def _begin_to_keep(asked: Asked, writer: int, pid: int) -> NoReturn:
    """Become the keeper: not a child of the program, which may wait for all its children."""
    try:
        os.setsid()
        if os.fork() == 0:
            keep(asked, writer, pid)
    finally:  # after any error, this copy of the launcher must not continue
        os._exit(0)


def _become(command: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Execute the program in this process."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606
    except OSError as exc:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{command[0]}: {exc.strerror}\n")
            sys.stderr.flush()
        os._exit(127 if isinstance(exc, FileNotFoundError) else 126)
