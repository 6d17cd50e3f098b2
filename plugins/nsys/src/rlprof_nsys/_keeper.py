"""The keeper: a process that starts nsys for a program, and cleans up after both.

It runs in a separate session and is not a child of the program. So nothing that the program does to
its process group, children or files affects it. If you kill the keeper, you lose windows and
nothing else.
"""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from rlprof_nsys._arguments import MARK, Mark
from rlprof_nsys._launch import EndedError, LaunchError, Started, start_session
from rlprof_nsys._processes import adopt_orphans, is_alive
from rlprof_nsys._program import Program, find_nsys, options_in, too_old
from rlprof_nsys._shared import read_word

if TYPE_CHECKING:
    from rlprof_nsys._arguments import Asked

_POLL_S = 0.2
_TRIES = 3
"""On a busy host, 22 of 913 launches of nsys 2023.4.4 ended before they started anything."""
_NSYS_OWN = ("TMPDIR", "LD_LIBRARY_PATH")
"""Variables for nsys, not for the program. nsys appends CUDA's folders to LD_LIBRARY_PATH. If that
was unset, it puts an empty entry first, which means the folder the program starts in."""
_SAID_TO_ALL = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGXCPU,
)  # fmt: skip
"""Signals that a scheduler sends to all processes of a job; the program may still run on."""


def keep(asked: Asked, pipe: int, pid: int) -> None:
    """Start a session, write the program's variables to *pipe*, and wait for the program's end."""
    _let_go(pipe)
    before = dict(os.environ)
    adopt_orphans()
    try:
        path = _find(asked.nsys)
        own = tempfile.TemporaryDirectory(prefix="rlprof-nsys-", ignore_cleanup_errors=True)
        with own as folder:
            os.chdir("/")  # the program's folder may be removed first
            program = Program(path, folder)
            started = _start(program, asked, pid)
            environ = {
                name: value
                for name, value in started.environ.items()
                if before.get(name) != value and name not in _NSYS_OWN
            }
            is_heard = _report(pipe, environ=environ)
            while is_heard and is_alive(pid):
                time.sleep(_POLL_S)
            if read_word(folder) is not None:  # nsys writes the report of the open window
                program.call("stop", f"--session={started.session}", timeout_s=60)
            started.release()
    except (LaunchError, OSError) as exc:
        _report(pipe, why=str(exc))


def _let_go(pipe: int) -> None:
    """Close the program's files, because somebody may wait for that, and ignore signals."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for one in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- numbers
        if int(one) > 2 and int(one) != pipe:
            with suppress(OSError):
                os.close(int(one))
    for number in _SAID_TO_ALL:
        signal.signal(number, lambda *_: None)


def _report(pipe: int, **facts: object) -> bool:
    """Write the outcome to *pipe*; return whether the launcher got it."""
    try:
        with os.fdopen(pipe, "w", encoding="utf-8") as file:
            json.dump(facts, file)
    except OSError:  # the launcher has ended, or no longer waits
        return False
    return True


def _find(asked: str) -> str:
    """Return the path of nsys; raise LaunchError if it cannot be used."""
    path = find_nsys(asked)
    if not path:
        raise LaunchError(
            f"there is no program {asked!r}; install Nsight Systems, or set nsys: PATH"
        )
    if why := too_old(path, Program(path).version()):
        raise LaunchError(why)
    return path


def _start(program: Program, asked: Asked, pid: int, tries: int = _TRIES) -> Started:
    """Start the session; raise LaunchError if it did not start."""
    args, mark = _launch_arguments(program, asked)
    name = re.sub(r"[^A-Za-z0-9-]", "-", asked.name)[:100]
    session = f"rlprof-{name}-{pid}" + (f"-{tries}" if tries < _TRIES else "")
    os.environ[MARK] = attrs.evolve(mark, session=session).text()
    try:
        return start_session(program, session, args, pid)
    except EndedError:
        if tries == 1:
            raise
        return _start(program, asked, pid, tries - 1)


def _launch_arguments(program: Program, asked: Asked) -> tuple[list[str], Mark]:
    """Return the arguments of `nsys launch`: the requested ones that its help lists."""
    known = options_in(program.help("launch"))
    args = [f"--{name}={value}" for name, value in asked.options.items() if name in known]
    mark = Mark(
        nsys=program.path,
        folder=program.folder,
        trace=",".join(asked.trace) or "none",
        asked={"trace": asked.trace, "env": asked.env, "options": dict(asked.options)},
    )
    if "trace" not in known:
        raise LaunchError(f"{program.path} launch --help does not answer; check the installation")
    args += [f"--trace={mark.trace}", "--wait=primary"]
    if asked.window:
        args.append(f"--nvtx-capture={asked.window}")
        os.environ["NSYS_NVTX_PROFILER_REGISTER_ONLY"] = "0"
    return args, mark
