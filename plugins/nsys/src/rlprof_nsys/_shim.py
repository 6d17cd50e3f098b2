"""What nsys launches: it starts the program as a child of the launcher, and waits for its end.

Run as a file, alone: `python -I -S _shim.py PLAN COMMAND...`. nsys traces whatever descends from
this process. The program is born here and handed to the launcher, which adopts orphans: so its
exit status, its signals and its life are the launcher's, and nsys may crash without harm to it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_ADOPTED_S = 5.0
_WAIT = "import os, sys; os.read(int(sys.argv[1]), 1)"
"""The launcher closes the other end, at its own end too."""


def main(plan_file: str, command: list[str]) -> int:
    """Fork twice, so that the program is adopted; then wait, unseen, until the launcher is done."""
    with open(plan_file, encoding="utf-8") as file:  # noqa: PTH123 -- few imports
        plan = json.load(file)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            _become_program(plan, command)
        os._exit(0)
    os.waitpid(child, 0)
    for number in plan["stdio"]:
        os.close(number)  # whoever reads the program's output must see its end
    # Without what nsys has put into its environment: this process is nothing to record.
    waits = [sys.executable, "-I", "-S", "-c", _WAIT, str(plan["hold"])]
    with suppress(OSError):
        os.execve(waits[0], waits, {"TMPDIR": os.environ.get("TMPDIR", "")})  # noqa: S606
    os.read(plan["hold"], 1)
    return 0


def _become_program(plan: dict[str, object], command: list[str]) -> None:
    launcher = plan["launcher"]
    end = time.monotonic() + _ADOPTED_S
    while os.getppid() != launcher and time.monotonic() < end:
        time.sleep(0.001)
    if os.getppid() != launcher:
        os._exit(1)  # nobody would have its exit status
    try:
        os.unlink(str(plan["ticket"]))  # noqa: PTH108
    except FileNotFoundError:
        os._exit(1)  # the launcher has given this try up, and starts the program otherwise
    # Whoever kills the launcher means the program.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(1)
    started = str(plan["started"])
    with open(f"{started}.part", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(str(os.getpid()))
    os.rename(f"{started}.part", started)  # noqa: PTH104
    _restore(plan)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as exc:
        os.write(2, f"{command[0]}: {exc.strerror}\n".encode())
        os._exit(127 if isinstance(exc, FileNotFoundError) else 126)


def _restore(plan: dict[str, object]) -> None:
    """Give the program its own files, folder, signals: nsys and Python have changed them."""
    stdio = plan["stdio"]
    assert isinstance(stdio, list)  # noqa: S101 -- for mypy
    for target, number in enumerate(stdio):
        os.dup2(number, target)
        os.close(number)
    os.close(int(str(plan["hold"])))
    os.environ.pop("TMPDIR", None)
    if plan["tmpdir"] is not None:
        os.environ["TMPDIR"] = str(plan["tmpdir"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, plan["mask"])  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
