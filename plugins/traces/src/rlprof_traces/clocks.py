"""How far the clocks of hosts are apart, by the collectives of their ranks.

A collective ends on all ranks at the same moment, apart from the network and from late threads. So
the ends of many collectives show how far one host's clock is ahead of another's. Processes of
one host share its clock and are never compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import attrs

from rlprof_traces._clock_fit import fit

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from rlprof_run import Run
    from rlprof_traces._clock_fit import Fit, Line, Times


@attrs.frozen
class Ends:
    """The collectives in one trace."""

    host: str
    """The boot id of its host: processes with the same one share a clock."""
    window: Hashable
    """Equal for traces that recorded the same window."""
    meetings: Sequence[tuple[str, int, int]]
    """Name, end and duration of each, in epoch ns; the name includes the group, if known."""
    error_ns: int = 0
    """How far times of the trace may differ from the clock of its host."""


@attrs.frozen
class HostClock:
    """The clock of a host, compared with that of a reference host."""

    host: str
    reference: str
    """The first of all hosts that share collectives, directly or through others."""
    collectives: int
    windows: int
    ahead_ns: int
    """The median over its collectives; negative: its clock is behind."""
    largest_ns: int
    """The same in the window where the clocks are furthest apart."""
    spread_ns: int
    """Nine in ten of the collectives agree to within this."""
    bound_ns: int
    """The error of the offset at most."""
    error_ns: int
    """How far times in its traces and the reference's may differ from their clocks."""
    drift: float
    """Seconds per second by which it gains on the reference."""
    lines: tuple[Line, ...]
    """From this clock to the reference, one for each host in between."""

    @property
    def says_more(self) -> bool:
        """Whether the collectives show a difference larger than their error."""
        return abs(self.largest_ns) > self.bound_ns + self.error_ns

    def on_reference(self, at_ns: int) -> int:
        """Return the time of the reference clock when this one shows *at_ns*."""
        for line in self.lines:
            at_ns -= line.ahead(at_ns)
        return at_ns


def host_clocks(traces: Iterable[Ends], hosts: Sequence[str]) -> tuple[HostClock, ...]:
    """Compare the clocks of *hosts*; the first one in this order is the reference.

    Hosts that share too few collectives with any other are left out, and so are references.
    """
    traces = list(traces)
    times = _by_host(traces)
    errors: defaultdict[str, int] = defaultdict(int)
    for one in traces:
        errors[one.host] = max(errors[one.host], one.error_ns)
    kinds = {host: {key[:2] for key in own} for host, own in times.items()}
    left = [host for host in dict.fromkeys(hosts) if host in times]
    found: list[HostClock] = []
    while left:
        reference = left.pop(0)
        reached: dict[str, HostClock | None] = {reference: None}
        for via in (queue := [reference]):  # which grows
            for host in list(left):
                if kinds[host].isdisjoint(kinds[via]):
                    continue
                fitted = fit(times[host], times[via])
                if fitted is None:
                    continue
                left.remove(host)
                queue.append(host)
                error_ns = errors[host] + errors[reference]
                reached[host] = clock = _clock(host, reference, fitted, reached[via], error_ns)
                found.append(clock)
    return tuple(sorted(found, key=lambda clock: hosts.index(clock.host)))


def in_words(run: Run) -> str:
    """Say in a sentence how the clocks of a run's hosts were put together, and how exactly.

    It looks at no trace. `rlprof export --to timeline` also compares hosts by their collectives.
    """
    bounds = {one.here.boot_id: one.offset_bound_ns for one in run.processes}
    known = [bound for bound in bounds.values() if bound is not None]
    if len(bounds) < 2:
        return "All processes ran on one host and share its clock."
    if not known:
        return (
            f"{len(bounds)} hosts have a wall clock each, and nobody measured how far these are "
            "apart; the timeline compares them where traces have collectives."
        )
    words = f"The driver of the fleet measured {_count(len(known), 'other host')}"
    words += f" to within {max(known) / 1e6:.3f} ms"
    others = len(bounds) - len(known) - 1
    return f"{words}; {_count(others, 'host')} did not answer." if others else f"{words}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _by_host(traces: Sequence[Ends]) -> dict[str, Times]:
    """Take of each collective the earliest begin and end of any rank of a host.

    Ranks are compared by the order of equal names. A rank that has more or fewer of a name than
    most have did not record the same ones, or not all: its are left out.
    """
    windows: defaultdict[Hashable, list[Ends]] = defaultdict(list)
    for one in traces:
        windows[one.window].append(one)
    found: defaultdict[str, Times] = defaultdict(dict)
    for window, ones in windows.items():
        counts = [Counter(name for name, _, _ in one.meetings) for one in ones]
        usual = {
            name: Counter(count[name] for count in counts if name in count).most_common(1)[0][0]
            for name in set().union(*counts)
        }
        for one, count in zip(ones, counts, strict=True):
            seen: Counter[str] = Counter()
            for name, end_ns, dur_ns in sorted(one.meetings, key=lambda meeting: meeting[1]):
                if count[name] != usual[name]:
                    continue
                key = window, name, seen[name]
                seen[name] += 1
                begin, end = found[one.host].get(key, (end_ns - dur_ns, end_ns))
                found[one.host][key] = min(begin, end_ns - dur_ns), min(end, end_ns)
    return dict(found)


def _clock(host: str, reference: str, own: Fit, via: HostClock | None, error_ns: int) -> HostClock:
    """Add the offset of the host in between, if there is one."""
    return HostClock(
        host=host,
        reference=reference,
        collectives=own.collectives,
        windows=own.windows,
        ahead_ns=own.ahead_ns + (via.ahead_ns if via else 0),
        largest_ns=own.largest_ns + (via.largest_ns if via else 0),
        spread_ns=own.spread_ns + (via.spread_ns if via else 0),
        bound_ns=own.bound_ns + (via.bound_ns if via else 0),
        error_ns=error_ns,
        drift=own.line.drift + (via.drift if via else 0.0),
        lines=(own.line, *(via.lines if via else ())),
    )
