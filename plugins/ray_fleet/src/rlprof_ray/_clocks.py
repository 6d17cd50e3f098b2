"""The lead of the members' clocks over the driver's: from the shortest round trip, with a bound.

The process of the member answers, in a concurrency group that does not wait for its work. So no
agent is needed, and the clock is the one that stamps. Members of one machine share one clock; a
member whose answer cannot come from that clock gets a separate offset.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_ray import _inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof_ray._member import Member

_ROUNDS = 8
_AT_ONCE = 8
"""Hosts asked at once: more would wait for each other's answers here, fewer take longer."""
_ANSWER_S = 2.0


@attrs.frozen
class Reading:
    """One answer of one member."""

    member: Member
    boot_id: str
    process: str
    """The name of its files."""
    offset_ns: int
    bound_ns: int

    def agrees(self, other: Reading) -> bool:
        """Whether both can come from one clock."""
        return abs(self.offset_ns - other.offset_ns) <= self.bound_ns + other.bound_ns


def measure(members: Iterable[Member], own_boot_id: str) -> list[dict[str, Any]]:
    """Return the lines with the lead of each clock."""
    first = _ask([one for one in members if not (one.gone or one.unanswered)])
    hosts: dict[str, Reading] = {}
    for reading in first:
        if reading.boot_id != own_boot_id:
            hosts.setdefault(reading.boot_id, reading)
    strangers = list(hosts.values())
    for place in range(0, len(strangers), _AT_ONCE):
        group = strangers[place : place + _AT_ONCE]
        for _ in range(_ROUNDS):
            for again in _ask([reading.member for reading in group]):
                hosts[again.boot_id] = min(hosts[again.boot_id], again, key=lambda r: r.bound_ns)
    lines = [_line(reading, process="") for reading in hosts.values()]
    for reading in first:
        host = hosts.get(reading.boot_id)
        reading.member.offset_ns = 0 if host is None else host.offset_ns
        reading.member.boot_id = reading.boot_id
        is_alike = abs(reading.offset_ns) <= reading.bound_ns if host is None else (
            reading.agrees(host)
        )  # fmt: skip
        if not is_alike:
            rounds = [one for _ in range(_ROUNDS) for one in _ask([reading.member])]
            own = min([reading, *rounds], key=lambda one: one.bound_ns)
            reading.member.offset_ns = own.offset_ns
            lines.append(_line(own, process=own.process))
    return lines


def _ask(members: Sequence[Member]) -> list[Reading]:
    """Ask all at once; each answer is bounded by its own round trip."""
    import ray

    sent = {}
    for member in members:
        before = time.time_ns()
        sent[member.aside(_inside.clock)] = member, before
    readings = []
    waiting = list(sent)
    until = time.monotonic() + _ANSWER_S
    while waiting and time.monotonic() < until:
        done, waiting = ray.wait(waiting, timeout=max(0.0, until - time.monotonic()))
        after = time.time_ns()
        for ref in done:
            member, before = sent[ref]
            with suppress(Exception):  # it is gone, or has no session: a later call reports it
                at_ns, boot_id, process = ray.get(ref)
                middle, bound = (before + after) // 2, (after - before) // 2
                readings.append(Reading(member, boot_id, process, at_ns - middle, bound))
    return readings


def _line(reading: Reading, process: str) -> dict[str, Any]:
    return {
        "boot_id": reading.boot_id,
        "process": process,
        "offset_ns": reading.offset_ns,
        "bound_ns": reading.bound_ns,
    }
