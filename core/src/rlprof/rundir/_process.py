"""A process for all that share the run folder: its identity, devices, liveness and clocks.

rlprof stamps everything with the monotonic clock, which never steps, and reads pairs of both
clocks now and then. `rlprof_run` turns one into the other.
"""

from __future__ import annotations

import os
import socket
import time
from operator import attrgetter
from pathlib import Path

import attrs

from rlprof.types import Clock

_VISIBLE = {
    "CUDA_VISIBLE_DEVICES": "cuda",
    "HIP_VISIBLE_DEVICES": "hip",
    "ROCR_VISIBLE_DEVICES": "hip",
    "ASCEND_RT_VISIBLE_DEVICES": "npu",
}


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _started(pid: int | str) -> str:
    # Fields 3 and 22 of stat, counted from behind the command's name, which may hold spaces.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    is_dead = not fields or fields[0] in "ZX"  # nobody has collected it yet
    return fields[19] if len(fields) > 19 and not is_dead else ""


def _pid_namespace() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return ""


_TEXT = attrs.validators.instance_of(str)  # a damaged manifest may say anything


@attrs.frozen
class Here:
    """A process as its manifest names it."""

    host: str = attrs.field(validator=_TEXT)
    boot_id: str = attrs.field(validator=_TEXT)
    """Equal for all containers of one machine: they share its clocks, not its pids."""
    pid_namespace: str = attrs.field(validator=_TEXT)
    pid: int
    started: str = attrs.field(validator=_TEXT)
    """Distinguishes a process from a later one with the same pid."""

    @classmethod
    def now(cls, pid: int | None = None) -> Here:
        """Describe the calling process, or the process *pid* of this host."""
        return cls(
            host=socket.gethostname(),
            boot_id=_read("/proc/sys/kernel/random/boot_id"),
            pid_namespace=_pid_namespace(),
            pid=os.getpid() if pid is None else pid,
            started=_started("self" if pid is None else pid),
        )


def born_ns() -> int:
    """Return the latest time at which the calling process can have begun, in wall-clock time.

    The kernel rounds it down to a tick of 10 ms, in which an earlier process may still have opened
    a run. Where it cannot be read, this is now.
    """
    now = time.time_ns()
    try:
        began_s = (int(_started("self")) + 1) / os.sysconf("SC_CLK_TCK")
    except ValueError:
        return now
    return now - int((time.clock_gettime(time.CLOCK_BOOTTIME) - began_s) * 1e9)


def is_alive(process: Here) -> bool | None:
    """Return whether *process* lives; None if that cannot be seen from here."""
    machine = attrgetter("host", "boot_id", "pid_namespace")
    if machine(process) != machine(Here.now()):
        return None
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and somebody else's
    return _started(process.pid) == process.started


def read_clock() -> Clock:
    """Read both clocks; the tightest of three tries, because a thread may be preempted."""
    tries = []
    for _ in range(3):
        before = time.monotonic_ns()
        realtime = time.time_ns()
        after = time.monotonic_ns()
        tries.append(Clock(realtime, (before + after) // 2, after - before))
    return min(tries, key=attrgetter("bound_ns"))


def visible_devices(variable: str = "CUDA_VISIBLE_DEVICES") -> list[str] | None:
    """Name the devices that *variable* lists, by number or uuid; None: it is not set.

    Launchers of one process a device (torchrun) give all of them the same list, and LOCAL_RANK.
    """
    text, local = os.environ.get(variable), os.environ.get("LOCAL_RANK", "")
    if text is None:
        is_there = local.isdecimal() and Path(f"/dev/nvidia{int(local)}").exists()
        return [local] if variable == "CUDA_VISIBLE_DEVICES" and is_there else None
    names = [
        name.strip() for name in text.split(",") if name.strip() not in ("", "-1", "NoDevFiles")
    ]
    is_shared = len(names) > 1 and "LOCAL_WORLD_SIZE" in os.environ and local.isdecimal()
    return names[int(local) : int(local) + 1] if is_shared else names


def devices(host: str) -> list[str]:
    """Name the devices of this process as the manifest does: `node-a/cuda:0`."""
    found = (
        f"{host}/{kind}:{name}"
        for variable, kind in _VISIBLE.items()
        for name in visible_devices(variable) or ()
    )
    return list(dict.fromkeys(found))
