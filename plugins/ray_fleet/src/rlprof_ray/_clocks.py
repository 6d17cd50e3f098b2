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
from rlprof_ray._member import aside

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

    def agrees(self, host: Reading | None) -> bool:
        """Whether it can come from the clock of *host*; None: from the driver's."""
        offset_ns, bound_ns = (0, 0) if host is None else (host.offset_ns, host.bound_ns)
        return abs(self.offset_ns - offset_ns) <= self.bound_ns + bound_ns


def measure(members: Iterable[Member], own_boot_id: str) -> list[dict[str, Any]]:
    """Return the lines with the lead of each clock."""
    first = _ask([one for one in members if not (one.gone or one.unanswered)])
    strangers = {one.boot_id: one for one in first if one.boot_id != own_boot_id}
    hosts = {one.boot_id: one for one in _closest(list(strangers.values()))}
    alone = [one for one in first if not one.agrees(hosts.get(one.boot_id))]
    for reading in first:
        host = hosts.get(reading.boot_id)
        reading.member.offset_ns = 0 if host is None else host.offset_ns
        reading.member.boot_id = reading.boot_id
    own = _closest(alone)
    for reading in own:
        reading.member.offset_ns = reading.offset_ns
    return [_line(one, process="") for one in hosts.values()] + [
        _line(one, process=one.process) for one in own
    ]


def _closest(readings: Sequence[Reading]) -> list[Reading]:
    """Ask these members again and again; return the reading of each with the least bound."""
    best = {one.member.id: one for one in readings}
    for place in range(0, len(readings), _AT_ONCE):
        group = [one.member for one in readings[place : place + _AT_ONCE]]
        for again in (one for _ in range(_ROUNDS) for one in _ask(group)):
            best[again.member.id] = min(best[again.member.id], again, key=lambda one: one.bound_ns)
    return list(best.values())


def _ask(members: Sequence[Member]) -> list[Reading]:
    """Ask all at once; each answer is bounded by its own round trip."""
    import ray

    sent = {}
    for member in members:
        before = time.time_ns()
        with suppress(Exception):  # a refused call: the next question to this member says so
            sent[aside(member.actor, _inside.clock, member.hello.run)] = member, before
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
    lead = {"offset_ns": reading.offset_ns, "bound_ns": reading.bound_ns}
    return {"boot_id": reading.boot_id, "process": process, **lead}
