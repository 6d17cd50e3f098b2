"""The keeper: a process that starts nsys for a program, and cleans up after both.

It runs in a separate session and is not a child of the program. So nothing that the program does to
its process group, children or files affects it. If you kill the keeper, you lose windows and
nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof_nsys._launch import start_session
from rlprof_nsys._mark import MARK, Mark
from rlprof_nsys._processes import adopt_orphans, end_children
from rlprof_nsys._program import Program, find_nsys, options_in, too_old, values_in

if TYPE_CHECKING:
    from rlprof_nsys._arguments import Asked
    from rlprof_nsys._launch import Started

_END_S = 10.0
"""How long nsys may take to end after the program has."""
_POLL_S = 0.2
_NSYS_OWN = ("TMPDIR", "LD_LIBRARY_PATH")
"""Variables for nsys, not for the program. nsys appends CUDA's folders to LD_LIBRARY_PATH. If that
was unset, it puts an empty entry first, which means the folder the program starts in."""
_SAID_TO_ALL = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGXCPU,
)  # fmt: skip
"""Signals that a scheduler sends to all processes of a job; the program may still run on."""


@attrs.frozen
class Life:
    """A process, by pid and start time: a later process may have the same pid."""

    pid: int
    born: bytes

    @classmethod
    def of(cls, pid: int) -> Life:
        """Return the life of the process *pid*."""
        return cls(pid, _stat(pid)[19])

    def is_over(self) -> bool:
        """Whether the process has ended."""
        try:
            fields = _stat(self.pid)
        except OSError:
            return True
        return fields[0] in b"ZX" or fields[19] != self.born

    def await_end(self) -> None:
        """Wait until the process has ended."""
        while not self.is_over():
            time.sleep(_POLL_S)


def keep(asked: Asked, say: int, program_life: Life) -> None:
    """Start a session, write the program's variables to *say*, and wait for the program's end."""
    _let_go(say)
    before = dict(os.environ)
    adopt_orphans()
    program, why = _prepare(asked)
    os.chdir("/")  # the program's folder may be removed first
    started = None
    if program is not None:
        try:
            started, why = _start(program, asked, program_life)
        except OSError as exc:
            why = f"the keeper cannot start nsys: {exc.strerror or exc}"
    is_told = _tell(say, started, why, before)
    if started is not None and program is not None:
        if is_told:
            program_life.await_end()
        _tidy(program, started)
    if program is not None:
        shutil.rmtree(program.folder, ignore_errors=True)


def _let_go(say: int) -> None:
    """Close the program's files, because somebody may wait for that, and ignore signals."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for one in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- numbers
        if int(one) > 2 and int(one) != say:
            with suppress(OSError):
                os.close(int(one))
    for number in _SAID_TO_ALL:
        signal.signal(number, lambda *_: None)


def _tell(say: int, started: Started | None, why: str, before: dict[str, str]) -> bool:
    """Write the outcome to *say*; return whether the launcher got it."""
    environ = {}
    if started is not None:
        environ = {
            name: value
            for name, value in started.environ.items()
            if before.get(name) != value and name not in _NSYS_OWN
        }
    text = json.dumps({"environ": environ, "why": why})
    try:
        with os.fdopen(say, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:  # the launcher has ended, or no longer waits
        return False
    return True


def _prepare(asked: Asked) -> tuple[Program | None, str]:
    """Find nsys and make its folder; else return why it cannot be used."""
    path = find_nsys(asked.nsys)
    if not path:
        return (
            None,
            f"there is no program {asked.nsys!r}; install Nsight Systems, or set nsys: PATH",
        )
    why = too_old(path, Program(path).version())
    if why:
        return None, why
    try:
        return Program(path, tempfile.mkdtemp(prefix="rlprof-nsys-")), ""
    except OSError as exc:
        return None, f"cannot make a folder for nsys: {exc}"


def _start(program: Program, asked: Asked, life: Life) -> tuple[Started | None, str]:
    """Start the session; else return why it did not start."""
    args, mark = _launch_arguments(program, asked)
    if not args:
        return None, f"{program.path} launch --help does not answer; check the installation"
    name = re.sub(r"[^A-Za-z0-9-]", "-", asked.name)[:100]
    session = f"rlprof-{name}-{life.pid}"
    os.environ[MARK] = attrs.evolve(mark, session=session).text()
    return start_session(program, session, args, life.is_over)


def _launch_arguments(program: Program, asked: Asked) -> tuple[list[str], Mark]:
    """Return the arguments of `nsys launch`: the requested ones that its help lists."""
    text = program.help("launch")
    known, traces = options_in(text), values_in(text, "trace")
    refused, args = {}, []
    trace = [name for name in asked.trace if name in traces]
    version = program.version()
    for name in asked.trace:
        if name not in traces:
            refused[name] = f"nsys {version} cannot trace it"
    for name, value in asked.options.items():
        if name in known:
            args.append(f"--{name}={value}")
    mark = Mark(
        nsys=program.path,
        folder=program.folder,
        trace=",".join(trace),
        refused=refused,
        asked={"trace": asked.trace, "env": asked.env, "options": dict(asked.options)},
    )
    if "trace" not in known:
        return [], mark
    args.append(f"--trace={mark.trace or 'none'}")
    if "wait" in known:
        args.append("--wait=primary")
    if asked.window:
        args.append(f"--nvtx-capture={asked.window}")
        os.environ["NSYS_NVTX_PROFILER_REGISTER_ONLY"] = "0"
    return args, mark


def _tidy(program: Program, started: Started) -> None:
    """Let nsys finish the report of an open window, then end nsys."""
    if started.has_window():
        program.call("stop", f"--session={started.session}", timeout_s=60)
    started.release()
    end = time.monotonic() + _END_S
    while started.cli.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if started.cli.poll() is None:
        program.call("shutdown", f"--session={started.session}", "--kill=none", timeout_s=_END_S)
    end_children(patience_s=_END_S)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/*pid*/stat, from the state on."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
