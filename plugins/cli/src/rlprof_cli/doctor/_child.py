"""Ask a child process, so that a hang or a crash there is an answer too.

Job, answer and last words go through memory, not through files or pipes: the disk may be full,
and a process that a plugin leaves running may hold a pipe open forever.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sysconfig
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.session.interpreter import command
from rlprof_cli._signals import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FRAME = re.compile(r'File "(?P<file>.*?)", line (?P<line>\d+) in (?P<name>.*)')
_HOOKS = ("configure", "start", "stop", "export", "push", "pop", "minibatch", "sample")
_CORE = str(Path(__file__).parents[1]) + os.sep
_PYTHON = sysconfig.get_paths()["stdlib"] + os.sep
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Exit)\b.*")


@attrs.frozen
class Answer:
    """The answer of a child, or how it ended instead."""

    value: Any = None
    """The result of the job; it may exist although the process crashed at its end."""
    fault: str = ""
    """`crashed with SIGSEGV in start (tool.py:12)`; empty: it ended normally."""
    raised: tuple[str, ...] = ()
    """The last lines of the exceptions it printed; a cause comes before its effect."""


def ask(
    job: str,
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    marked: str = "",
    **args: Any,
) -> Answer:
    """Run *job* of `rlprof_cli.doctor.child` in a process that is gone when this returns.

    Its children are gone too, if they are in its process group or have the text *marked* in their
    command line.
    """
    result, log = os.memfd_create("result"), os.memfd_create("log")
    dump_at = time.monotonic() + 0.9 * timeout_s  # one clock for all processes of a host
    text = json.dumps({"job": job, "dump_at": dump_at, "args": args}, default=str)
    argv = [*prefix, *command("rlprof_cli.doctor.child", str(result), text)]
    process = None
    try:
        try:
            with uninterrupted():
                process = subprocess.Popen(
                    argv,
                    env=os.environ | (env or {}),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(result,),
                    start_new_session=True,
                )
            code = process.wait(timeout_s)
        except OSError as exc:
            return Answer(fault=f"could not be started: {exc.strerror}: {argv[0]}")
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process is not None:
                _end(process, marked)
        output = _text(log)
        raised = tuple(line for line in output.splitlines() if _RAISED.match(line))
        value = json.loads(_text(result)) if os.fstat(result).st_size else None
        is_well = code == 0 and value is not None
        return Answer(value, "" if is_well else _fault(code, output, timeout_s), raised)
    finally:
        os.close(result)
        os.close(log)


def _text(memory: int) -> str:
    size = os.fstat(memory).st_size
    begin = max(0, size - (1 << 20))
    return os.pread(memory, size - begin, begin).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes], marked: str) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # stuck in a file system; it dies later
        process.wait(1)
    for folder in Path("/proc").glob("[0-9]*") if marked else ():
        with suppress(OSError):
            if marked.encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


def _fault(code: int | None, output: str, timeout_s: float) -> str:
    if code is None:
        return f"did not return within {timeout_s:g} s{_place(output)}"
    if code < 0:
        known = -code in signal.Signals.__members__.values()
        name = signal.Signals(-code).name if known else f"signal {-code}"
        return f"crashed with {name}{_place(output)}"
    words = output.strip().splitlines()
    raised = [line for line in words if _RAISED.match(line)]
    last = (raised or words or ["it said nothing"])[-1]
    return f"ended with {code}: {last[:500]}"


def _place(output: str) -> str:
    """Find in the output of `faulthandler` where it was: in which hook of the plugin, if any."""
    blocks = re.split(r"^(?=Current thread|Thread 0x)", output, flags=re.MULTILINE)[1:]
    crashed = [block for block in blocks if block.startswith("Current")]
    threads = [list(_FRAME.finditer(block)) for block in crashed or blocks[::-1]]  # main is last
    for frames in threads:
        theirs = [frame for frame in frames if _is_theirs(frame["file"])]
        if theirs:
            hook = next((frame["name"] for frame in theirs[1:] if frame["name"] in _HOOKS), "")
            return _named(theirs[0]) + (f", in its {hook}" if hook else "")
    return next((_named(frames[0]) for frames in threads if frames), "")


def _is_theirs(file: str) -> bool:
    """Whether *file* is part of neither Python nor core; packages may lie below Python's folder."""
    if file.startswith((_CORE, "<")):
        return False
    return not file.startswith(_PYTHON) or "site-packages" in file.removeprefix(_PYTHON)


def _named(frame: re.Match[str]) -> str:
    return f" in {frame['name']} ({frame['file']}:{frame['line']})"
