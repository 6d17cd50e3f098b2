"""Clocks that cannot be trusted."""

from __future__ import annotations

import pytest

from rlprof.types import Clock
from rlprof_cli.doctor import _clocks

SECOND = 10**9
NOW = 1_790_000_000 * SECOND  # in 2026


def pair(offset_ns, monotonic_ns, bound_ns=200):
    return Clock(NOW + offset_ns + monotonic_ns, monotonic_ns, bound_ns)


@pytest.mark.parametrize(
    ("after", "kernel", "said"),
    [
        (pair(400_000, SECOND), 0, []),
        (pair(0, 0), 0, []),
        (pair(-5 * SECOND, SECOND), 0, [("clocks: the wall clock moved -5000.000 ms against the "
         "monotonic one within 1.0 s; let NTP settle before a run over several hosts")]),
        (pair(2_000_000, SECOND), 0, [("clocks: the wall clock moved +2.000 ms against the "
         "monotonic one within 1.0 s; let NTP settle before a run over several hosts")]),
        (pair(0, SECOND), 0x2041, ["clocks: the kernel reports the wall clock as unsynchronised; "
         + _clocks._MANY_HOSTS]),
    ],
    ids=["slewed", "no time", "set back", "set forward", "unsynchronised"],
)  # fmt: skip
def test_a_clock_that_was_set_or_is_not_synchronised_is_named(after, kernel, said):
    """What moved more than NTP slews was a step: how far, in how long; STA_UNSYNC is a warning."""
    found = _clocks.look_at_clocks(pair(0, 0), after, kernel)

    assert [str(one) for one in found if one.level != "ok"] == said


def test_a_date_that_cannot_be_is_bad():
    """A wall clock that nobody has set is BAD."""
    (found,) = _clocks.look_at_clocks(Clock(0, 0, 0), Clock(SECOND, SECOND, 0), 0)

    assert found.level == "BAD"
    assert "clocks: the wall clock says 1970-01-01; set it" in str(found)
