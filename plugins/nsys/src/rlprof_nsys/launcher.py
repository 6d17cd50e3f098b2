"""`python -m rlprof_nsys.launcher [OPTIONS] -- COMMAND...`: the command, idle under nsys.

For whoever started it, the launcher is the program: it passes signals on, and ends as the program
ended. Where nsys cannot be used, it becomes the program, unprofiled, and says why.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import attrs

from rlprof_nsys._abandoned import PREFIX, claim, clear_abandoned
from rlprof_nsys._arguments import Asked, read_arguments
from rlprof_nsys._mark import MARK, Mark
from rlprof_nsys._processes import adopt_orphans, end_all, has_tmpdir, reap
from rlprof_nsys._program import Program, find_nsys, options_in, values_in
from rlprof_nsys._report import rescue
from rlprof_nsys._try import start_under_nsys

if TYPE_CHECKING:
    from types import FrameType

    from rlprof_nsys._try import Started

TRIES = 8
_START_S = 60.0
"""All tries together; training waits meanwhile."""
_END_S = 10.0
"""How long nsys may take to end after the program has."""
_PASSED_ON = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT, signal.SIGWINCH, signal.SIGALRM,
)  # fmt: skip
_DEADLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_NEEDED = (
    "HOME", "HOSTNAME", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOGNAME",
    "NVTX_*", "PATH", "PWD", "PYTHON*", "RLPROF_*", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""Variables that stay where `env` names others."""


class Signals:
    """What came for the program: passed on at once, or as soon as there is one."""

    def __init__(self) -> None:
        self.program = 0
        self.waiting: list[int] = []
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, self._take)

    @property
    def deadly(self) -> int:
        """The first that ends a program which is not there yet; 0: none has come."""
        return next((number for number in self.waiting if number in _DEADLY), 0)

    def deliver(self, program: int) -> None:
        """Pass on to *program* what has come, and what comes from now on."""
        self.program = program
        while self.waiting:
            self._take(self.waiting.pop(0), None)

    def _take(self, number: int, _: FrameType | None) -> None:
        if not self.program:
            self.waiting.append(number)
            return
        with suppress(ProcessLookupError):
            os.kill(self.program, number)


def main(argv: list[str]) -> int:
    """Start the command under nsys, live as long as it does, and end as it ends."""
    asked, command = read_arguments(argv)
    if _choose_variables(asked.env):  # begin again: nsys reads what its ancestors were born with
        os.execv(sys.executable, [sys.executable, "-m", "rlprof_nsys.launcher", *argv])  # noqa: S606
    program, why = _prepare(asked)
    if program is None:
        _run_unprofiled(command, why)
    signals = Signals()
    started, why = _start(program, asked, command, signals)
    if started is None:
        shutil.rmtree(program.folder, ignore_errors=True)
        if signals.deadly:
            _end_by(signals.deadly)
        _run_unprofiled(command, why)
    signals.deliver(started.pid)
    status = _wait_for(started.pid)
    signals.program = 0
    _tidy(program, started)
    if os.WIFSIGNALED(status):
        _end_by(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _choose_variables(allowed: tuple[str, ...] | None) -> bool:
    """Take away what a report must not hold; return whether there was any of it."""
    patterns = (*_NEEDED, *(allowed or ()))
    named = [
        name
        for name in os.environ
        if allowed is not None and not any(fnmatchcase(name, one) for one in patterns)
    ]
    for name in named:
        del os.environ[name]
    return bool(named)


def _prepare(asked: Asked) -> tuple[Program | None, str]:
    """Find nsys and make its folder; or say why it cannot be used."""
    session = os.environ.get("NSYS_PROFILING_SESSION_ID")
    if session:
        return None, f"the process is in session {session} of nsys already; start it by one of both"
    path = find_nsys(asked.nsys)
    if not path:
        return (
            None,
            f"there is no program {asked.nsys!r}; install Nsight Systems, or set nsys: PATH",
        )
    if not adopt_orphans():
        return None, "this kernel does not let a process adopt orphans (PR_SET_CHILD_SUBREAPER)"
    try:
        clear_abandoned(Path(tempfile.gettempdir()))
        folder = tempfile.mkdtemp(prefix=PREFIX)
    except OSError as exc:
        return None, f"no folder can be made for nsys: {exc}"
    claim(Path(folder))
    return Program(path, folder), ""


def _start(
    program: Program, asked: Asked, command: list[str], signals: Signals
) -> tuple[Started | None, str]:
    """Try until the program runs; it is lost in a race about once in fifteen times (2022.4)."""
    name = re.sub(r"[^A-Za-z0-9-]", "-", asked.name)
    args, mark = _launch_arguments(program, asked)
    if not args:
        return None, f"{program.path} launch --help does not answer; is it whole?"
    end, why = time.monotonic() + _START_S, ""
    for number in range(TRIES):
        left = end - time.monotonic()
        if signals.deadly or left <= 0:
            break
        session = f"rlprof-{name}-{os.getpid()}-{number}"
        os.environ[MARK] = attrs.evolve(mark, session=session).text()
        started, why = start_under_nsys(
            program, session, args, command, within_s=left, is_given_up=lambda: signals.deadly
        )
        if started is not None:
            return started, ""
        mark = _without(args, mark, why)
        reap()
        time.sleep(min(0.1 * (number + 1), 0.5))
    return None, f"nsys did not start it in {number + 1} tries: {why}"


def _without(args: list[str], mark: Mark, why: str) -> Mark:
    """Leave out an option that nsys says it does not know, though its help has it."""
    unknown = re.match(r"unrecogni[sz]ed option '--([a-z0-9-]+)", why)
    left = [arg for arg in args if unknown and not arg.startswith(f"--{unknown[1]}=")]
    if unknown is None or len(left) == len(args):
        return mark
    args[:] = left
    return attrs.evolve(mark, refused={**mark.refused, unknown[1]: f"nsys refuses it: {why}"})


def _launch_arguments(program: Program, asked: Asked) -> tuple[list[str], Mark]:
    """Write what `nsys launch` is told: of what is asked, that which its help knows."""
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
    mark = Mark(nsys=program.path, folder=program.folder, trace=",".join(trace), refused=refused)
    if "trace" not in known:
        return [], mark
    args.append(f"--trace={mark.trace or 'none'}")
    if "wait" in known:
        args.append("--wait=primary")
    if asked.window:
        args.append(f"--nvtx-capture={asked.window}")
        os.environ["NSYS_NVTX_PROFILER_REGISTER_ONLY"] = "0"
    return args, mark


def _wait_for(program: int) -> int:
    """Wait for *program*, and bury whatever else has become a child of ours."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            return status


def _tidy(program: Program, started: Started) -> None:
    """Let nsys finish the report of an open window, and end; leave nothing of it."""
    folder = started.open_window()
    if folder is not None:
        program.call("stop", f"--session={started.session}", timeout_s=60)
        rescue(program, folder)
    started.release()
    end = time.monotonic() + _END_S
    while started.cli.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if started.cli.poll() is None:
        program.call("shutdown", f"--session={started.session}", "--kill=none", timeout_s=_END_S)
    end_all(lambda pid: has_tmpdir(pid, program.folder), within_s=2)
    if folder is not None:  # what was still being written, and is now as far as it will get
        rescue(program, folder)
    shutil.rmtree(program.folder, ignore_errors=True)


def _run_unprofiled(command: list[str], why: str) -> NoReturn:
    """Become the program, which finds in its environment why it is not under nsys."""
    sys.stderr.write(f"rlprof-nsys: {why}; the program runs unprofiled\n")
    sys.stderr.flush()
    os.environ[MARK] = Mark(why=why).text()
    adopt_orphans(on=False)  # it would outlast the exec
    handled = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    for number in (*handled, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as exc:
        sys.stderr.write(f"{command[0]}: {exc.strerror}\n")
        sys.exit(127 if isinstance(exc, FileNotFoundError) else 126)


def _end_by(number: int) -> NoReturn:
    """End by the signal the program ended by; its core is enough."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)  # it was one that does not end a process


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
