"""Subtracts the clock offsets that a fleet's driver measured from the times of other hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.types import Clock
from rlprof_run._fields import time_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlprof_run._run import CaptureResult, Process


@attrs.frozen
class Offset:
    """How far a wall clock is ahead of the driver's."""

    boot_id: str
    """Whose clock it is: all processes of a machine share one."""
    process: str
    """The process whose clock it is, if that differs from the clock of its machine."""
    offset_ns: int
    bound_ns: int
    """How far the truth may be from it: half of the round trip."""

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Offset:
        """Read a line of a manifest."""
        return cls(
            str(line["boot_id"]),
            str(line.get("process") or ""),
            time_of(line, "offset_ns"),
            time_of(line, "bound_ns"),
        )


def aligned(
    processes: Sequence[Process], captures: Sequence[CaptureResult], offsets: Iterable[Offset]
) -> tuple[list[Process], list[CaptureResult]]:
    """Bring all to the clock of the measuring process; unmeasured times stay unchanged."""
    best: dict[str, Offset] = {}
    for offset in offsets:
        key = offset.process or offset.boot_id
        if key not in best or offset.bound_ns < best[key].bound_ns:
            best[key] = offset
    found = {one.name: best.get(one.name) or best.get(one.here.boot_id) for one in processes}
    moved = [_moved(process, found[process.name]) for process in processes]
    return moved, [_shifted(capture, found.get(capture.process)) for capture in captures]


def _shifted(capture: CaptureResult, offset: Offset | None) -> CaptureResult:
    if offset is None:
        return capture
    return attrs.evolve(capture, clock_shift_ns=capture.clock_shift_ns - offset.offset_ns)


def _moved(process: Process, offset: Offset | None) -> Process:
    if offset is None:
        return process
    clocks = tuple(
        Clock(
            pair.realtime_ns - offset.offset_ns,
            pair.monotonic_ns,
            pair.bound_ns + offset.bound_ns,
        )
        for pair in process.clocks
    )
    return attrs.evolve(
        process, clocks=clocks, offset_ns=offset.offset_ns, offset_bound_ns=offset.bound_ns
    )
