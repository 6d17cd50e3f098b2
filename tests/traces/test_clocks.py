"""Clocks of hosts by the ends of their collectives: found to within the spread, or not claimed."""

from __future__ import annotations

import random

import attrs
import pytest

from rlprof_traces.clocks import Ends, host_clocks

START = 1_790_857_026_000_000_000
MS = 1_000_000
HOSTS = [f"host-{n}" for n in range(8)]


class Cluster:
    """Eight hosts of two ranks, each host with a clock of its own, and noise of a real wire."""

    def __init__(self, seed: int, offset_ns: int = 5_000 * MS, drift: float = 5e-5) -> None:
        self.rng = random.Random(seed)  # noqa: S311 -- the same in each run
        self.ahead = [self.rng.randint(-offset_ns, offset_ns) for _ in HOSTS]
        self.drift = [self.rng.uniform(-drift, drift) for _ in HOSTS]

    def shown(self, host: int, at: int) -> int:
        """Say what the clock of *host* shows *at* ns after the start."""
        return START + at + self.ahead[host] + round(self.drift[host] * at)

    def window(self, start: int, names=("gloo:all_reduce",)) -> list[Ends]:
        """Let all ranks meet 40 times; a thread in twenty is 3 ms late."""
        found = []
        for host in range(len(HOSTS)):
            for _ in range(2):
                meetings = []
                for n in range(40):
                    late = round(self.rng.expovariate(1 / 50_000))
                    late += 3 * MS * (self.rng.random() < 0.05)
                    dur = self.rng.randint(300_000, 4 * MS)
                    end = self.shown(host, start + n * 10 * MS + late)
                    meetings.append((names[n % len(names)], end, dur + late))
                found.append(Ends(HOSTS[host], start, meetings))
        return found


def test_a_clock_that_wanders_is_followed_from_window_to_window() -> None:
    """Where no line fits, what lies between two windows is interpolated; order is kept."""
    cluster = Cluster(0, offset_ns=0, drift=0.0)
    traces = []
    for n, ahead in enumerate((0, 20 * MS, -10 * MS)):
        cluster.ahead[1] = ahead
        traces += [one for one in cluster.window(n * 600_000 * MS) if one.host in HOSTS[:2]]

    (clock,) = host_clocks(traces, HOSTS)

    assert clock.on_reference(START + 300_000 * MS) - START - 300_000 * MS == pytest.approx(
        -10 * MS, abs=100_000
    )
    times = range(START, START + 1_800_000 * MS, 1_000 * MS)
    moved = [clock.on_reference(at) for at in times]
    assert sorted(moved) == moved


def test_hosts_that_meet_through_another_are_on_one_clock() -> None:
    """Stages of a pipeline: the first meets the second, the second the third."""
    cluster = Cluster(3, drift=0.0)
    ranks = cluster.window(0)
    first = [attrs.evolve(one, window="a") for one in ranks if one.host in HOSTS[:2]]
    second = [attrs.evolve(one, window="b") for one in ranks if one.host in HOSTS[1:3]]

    clocks = host_clocks([*first, *second], HOSTS)

    assert [(clock.host, clock.reference) for clock in clocks] == [
        ("host-1", "host-0"), ("host-2", "host-0"),
    ]  # fmt: skip
    at = 200 * MS
    off = clocks[1].on_reference(cluster.shown(2, at)) - cluster.shown(0, at)
    assert abs(off) <= clocks[1].spread_ns


def test_a_trace_that_was_cut_is_not_matched_with_whole_ones() -> None:
    """With one collective less than the others, its n-th is another one than theirs."""
    traces = Cluster(1, offset_ns=0, drift=0.0).window(0)
    cut = [
        attrs.evolve(one, meetings=one.meetings[1:]) if one.host == "host-1" else one
        for one in traces
    ]

    assert [clock.host for clock in host_clocks(cut, HOSTS)] == HOSTS[2:]
