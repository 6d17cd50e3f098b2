"""Clocks that cannot be trusted."""

from __future__ import annotations

import pytest

from rlprof.types import Clock
from rlprof_cli.doctor._clocks import look_at_clocks

NOW = 1_790_000_000 * 10**9  # in 2026


def pair(offset_ns, monotonic_ns, bound_ns=200):
    return Clock(NOW + offset_ns + monotonic_ns, monotonic_ns, bound_ns)


def wrong(before, after, kernel=0):
    return [str(found) for found in look_at_clocks(before, after, kernel) if found.level != "ok"]


def test_steady_clocks_are_well():
    """Clocks that go together, within what NTP may slew, are ok."""
    second = 10**9

    assert wrong(pair(0, 0), pair(400_000, second)) == []
    assert wrong(pair(0, 5), pair(0, 5)) == []


@pytest.mark.parametrize("step_ns", [-5 * 10**9, 2_000_000])
def test_a_step_of_the_wall_clock_is_named(step_ns):
    """What moved more than NTP slews was a step: it says how far, and in how long."""
    (found,) = wrong(pair(0, 0), pair(step_ns, 10**9))

    assert found == (
        f"clocks: the wall clock moved {step_ns / 1e6:+.3f} ms against the monotonic one within "
        "1.0 s; let NTP settle before a run over several hosts"
    )


def test_a_date_that_cannot_be_is_bad():
    """A wall clock that nobody has set is BAD."""
    (found,) = look_at_clocks(Clock(0, 0, 0), Clock(10**9, 10**9, 0), 0)

    assert found.level == "BAD"
    assert "clocks: the wall clock says 1970-01-01; set it" in str(found)


def test_an_unsynchronised_kernel_is_named():
    """STA_UNSYNC is a warning, whatever the other bits."""
    (found,) = wrong(pair(0, 0), pair(0, 10**9), kernel=0x2041)

    assert "reports the wall clock as unsynchronised" in found
