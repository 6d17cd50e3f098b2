"""What a fleet costs: the driver while no window is open, and every member when one is.

`.envs/test/bin/python bench/fleet.py [MEMBERS] [threaded]`

Members are actors with a tool that records nothing. A window asks each of them twice, to start and
to stop; for comparison, in turn, the same actors get two empty calls each, made in the same way
(`__ray_call__`). CPU is that of the driver, of Ray's own processes and of the actors together, read
from /proc. Exports are left out: they are a helper process' work at lowest priority, with or
without a fleet.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from _measure import machine, nanoseconds, verdict

os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "120"}

import ray

import rlprof
import rlprof_ray

if TYPE_CHECKING:
    from collections.abc import Callable

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_ROUNDS = 10
_WINDOWS = 5
_BLOCK_S = 5.0


class Nothing:
    """A tool that records nothing, so that what is left is the fleet's."""

    runs_on = "process"

    @rlprof.hookimpl
    def configure(self) -> None: ...

    @rlprof.hookimpl
    def start(self) -> None: ...

    @rlprof.hookimpl
    def stop(self) -> None: ...

    @rlprof.hookimpl
    def export(self) -> list[Any]:
        return []


class Light:
    """An actor with next to nothing in it."""

    def __init__(self) -> None:
        from rlprof.session._scribe import Scribe

        rlprof.register("tool", "nothing", Nothing)
        Scribe.export = lambda scribe, job: scribe.discard(job.folder)  # type: ignore[method-assign,assignment]

    def empty(self) -> None: ...


def _empty(actor: object) -> None:
    """Do nothing: calls of the fleet are compared with this one, made in the same way."""


def cpu_s(pids: list[int]) -> float:
    """Add up the CPU that processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * _TICK_S


def family() -> list[int]:
    """List this process and all below it: Ray, its workers."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:  # it has just ended
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, above in parents.items() if above in found} - found:
        found |= more
    return sorted(found)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    calls = 2 if "threaded" in sys.argv else 1
    path = os.pathsep.join(filter(None, sys.path))
    ray.init(
        num_cpus=count, include_dashboard=False, log_to_driver=False, logging_level="error",
        object_store_memory=100 << 20, runtime_env={"env_vars": {"PYTHONPATH": path}},
    )  # fmt: skip
    rlprof.register("tool", "nothing", Nothing)
    actors = [ray.remote(num_cpus=0, max_concurrency=calls)(Light).remote() for _ in range(count)]
    ray.get([actor.empty.remote() for actor in actors])
    kind = "threaded" if calls > 1 else "plain"
    print(f"fleet: {count} members, {kind} actors, {machine()}")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 -- no disk in the figures
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        config = {
            "run_dir": f"{folder}/runs", "scratch_dir": f"{folder}/scratch", "tool": "nothing",
            "steps": {"every": 1, "first": 10**6}, "roles": {"actor": {"ranks": "all"}},
        }  # fmt: skip
        fleet = rlprof_ray.Fleet(config)
        began = time.perf_counter()
        fleet.attach(actor=actors)
        attached_s = time.perf_counter() - began
        idle = _idle(fleet)
        costs = _windows(fleet, actors, family())
        began = time.perf_counter()
        fleet.close()
        closed_s = time.perf_counter() - began
    ray.shutdown()
    print(f"  attach {attached_s:.2f} s, close {closed_s:.2f} s")
    holds = [
        verdict("a step with a phase, no window: driver", idle / 1000, 20, "us"),
        verdict("CPU per member and window over two empty calls", costs.member * 1000, 2, "ms"),
    ]
    print(
        f"  of a window, all members: the driver is at it {costs.driver * 1000:.1f} ms of CPU more "
        f"than with empty calls,\n  its phase begins {costs.opening * 1000:.1f} ms late and ends "
        f"{costs.closing * 1000:.1f} ms late (medians)"
    )
    return 0 if all(holds) else 1


def _idle(fleet: rlprof_ray.Fleet) -> float:
    steps = iter(range(1, 10**6))

    def step() -> None:
        fleet.step(next(steps))
        with fleet.phase("update"):
            pass

    return nanoseconds(step, 1000, 20)


class Costs(NamedTuple):
    """Medians, in seconds."""

    member: float
    driver: float
    opening: float
    closing: float


def _windows(fleet: rlprof_ray.Fleet, actors: list[Any], pids: list[int]) -> Costs:
    """Open windows and make empty calls in turn."""
    steps = iter(range(10**6, 2 * 10**6))
    opening: list[float] = []
    closing: list[float] = []

    def windows() -> None:
        for _ in range(_WINDOWS):
            fleet.step(next(steps))
            times = [time.perf_counter()]
            with fleet.phase("update"):
                times.append(time.perf_counter())
                times.append(time.perf_counter())
            times.append(time.perf_counter())
            opening.append(times[1] - times[0])
            closing.append(times[3] - times[2])
            ray.get([actor.empty.remote() for actor in actors])  # all have answered

    def calls() -> None:
        for _ in range(_WINDOWS):
            for _ in range(2):
                ray.get([actor.__ray_call__.remote(_empty) for actor in actors])
            ray.get([actor.empty.remote() for actor in actors])

    def cost(work: Callable[[], None]) -> tuple[float, float]:
        before, began = (cpu_s(pids), time.process_time()), time.monotonic()
        work()
        # What the helper threads write comes within two seconds; and Ray's own threads cost CPU by
        # the second, so both take equally long.
        time.sleep(max(2.5, began + _BLOCK_S - time.monotonic()))
        return cpu_s(pids) - before[0], time.process_time() - before[1]

    both = [(cost(windows), cost(calls)) for _ in range(_ROUNDS)][1:]
    members = [(ours[0] - theirs[0]) / len(actors) / _WINDOWS for ours, theirs in both]
    drivers = [(ours[1] - theirs[1]) / _WINDOWS for ours, theirs in both]
    return Costs(*map(median, (members, drivers, opening, closing)))


if __name__ == "__main__":
    sys.exit(main())
