"""Clocks of hosts by the ends of their collectives: found to within the spread, or not claimed."""

from __future__ import annotations

import random

import attrs
import pytest

from rlprof_traces.clocks import Ends, host_clocks

START = 1_790_857_026_000_000_000
MS = 1_000_000
HOSTS = [f"host-{n}" for n in range(8)]


def window(ahead: list[int], start: int = 0, hosts: list[str] = HOSTS) -> list[Ends]:
    """Let two ranks of each host, whose clock is *ahead*, meet 40 times; one in twenty is late."""
    rng, found = random.Random(start), []  # noqa: S311 -- the same in each run
    for host, off in [*zip(hosts, ahead, strict=True)] * 2:
        meetings = []
        for n in range(40):
            late = round(rng.expovariate(1 / 50_000)) + 3 * MS * (rng.random() < 0.05)
            end, dur = START + start + n * 10 * MS + late + off, rng.randint(300_000, 4 * MS)
            meetings.append(("gloo:all_reduce", end, dur + late))
        found.append(Ends(host, start, meetings))
    return found


def test_a_clock_that_wanders_is_followed_from_window_to_window() -> None:
    """Where no line fits, what lies between two windows is interpolated; order is kept."""
    traces = []
    for n, ahead in enumerate((0, 20 * MS, -10 * MS)):
        traces += window([0, ahead], n * 600_000 * MS, HOSTS[:2])

    (clock,) = host_clocks(traces, HOSTS)

    assert clock.on_reference(START + 300_000 * MS) - START - 300_000 * MS == pytest.approx(
        -10 * MS, abs=100_000
    )
    times = range(START, START + 1_800_000 * MS, 1_000 * MS)
    moved = [clock.on_reference(at) for at in times]
    assert sorted(moved) == moved


def test_hosts_that_meet_through_another_are_on_one_clock() -> None:
    """Stages of a pipeline: the first meets the second, the second the third."""
    first = window([-3_000 * MS, 2_000 * MS], 0, HOSTS[:2])
    second = window([2_000 * MS, 4_500 * MS], 1, HOSTS[1:3])

    clocks = host_clocks([*first, *second], HOSTS)

    assert [(clock.host, clock.reference) for clock in clocks] == [
        ("host-1", "host-0"), ("host-2", "host-0"),
    ]  # fmt: skip
    off = clocks[1].on_reference(START + 4_500 * MS) - (START - 3_000 * MS)
    assert abs(off) <= clocks[1].spread_ns


def test_a_trace_that_was_cut_is_not_matched_with_whole_ones() -> None:
    """With one collective less than the others, its n-th is another one than theirs."""
    cut = [
        attrs.evolve(one, meetings=one.meetings[1:]) if one.host == "host-1" else one
        for one in window([0] * 8)
    ]

    assert [clock.host for clock in host_clocks(cut, HOSTS)] == HOSTS[2:]
