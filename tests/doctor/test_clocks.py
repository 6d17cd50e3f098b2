"""Clocks that cannot be trusted."""

from __future__ import annotations

import pytest

from rlprof.types import Clock
from rlprof_cli.doctor._clocks import kernel_status, look_at_clocks
from tests.doctor.running import doctor, preloaded

NOW = 1_790_000_000 * 10**9  # in 2026
STEPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int has_piped;  /* which a command does when it starts its first child */
int pipe2(int fds[2], int flags) {
    has_piped = 1;
    return ((int (*)(int *, int))dlsym(RTLD_NEXT, "pipe2"))(fds, flags);
}
int clock_gettime(clockid_t id, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, out);
    if (id == CLOCK_REALTIME && has_piped) out->tv_sec -= 5;
    return code;
}
"""
OLD = """
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *out) {
    int code = syscall(SYS_clock_gettime, id, out);
    if (id == CLOCK_REALTIME) out->tv_sec %= 1000000;
    return code;
}
"""


def pair(offset_ns, monotonic_ns, bound_ns=200):
    return Clock(NOW + offset_ns + monotonic_ns, monotonic_ns, bound_ns)


def wrong(before, after, kernel=0):
    return [str(found) for found in look_at_clocks(before, after, kernel) if found.level != "ok"]


def test_steady_clocks_are_well():
    """Clocks that go together, within what NTP may slew, are ok."""
    second = 10**9

    assert wrong(pair(0, 0), pair(400_000, second)) == []
    assert wrong(pair(0, 5), pair(0, 5)) == []


@pytest.mark.parametrize("step_ns", [-5 * 10**9, 3_600 * 10**9, 2_000_000])
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


def test_slow_readings_are_named():
    """Two readings that lie far apart are an error in every time."""
    (found,) = wrong(pair(0, 0), pair(0, 10**9, bound_ns=3_000_000))

    assert found.startswith("clocks: reading both takes 3000 us; ")


def test_an_unsynchronised_kernel_is_named():
    """STA_UNSYNC is a warning, whatever the other bits."""
    (found,) = wrong(pair(0, 0), pair(0, 10**9), kernel=0x2041)

    assert "nobody keeps the wall clock (unsynchronised)" in found


def test_the_kernel_answers():
    """What the kernel says are bits that adjtimex knows."""
    assert 0 <= kernel_status() < 1 << 16


@pytest.mark.slow
def test_a_clock_that_steps_while_we_look_is_found(profile, tmp_path):
    """A wall clock that is set back by five seconds under the command is told by it."""
    env = preloaded(tmp_path, STEPS)

    told = doctor(profile(), env=env)

    assert told.code == 0, told.text
    assert any("clocks: the wall clock moved -5000" in line for line in told["warn"]), told.text


@pytest.mark.slow
def test_a_clock_of_1970_ends_with_1(profile, tmp_path):
    """A machine whose clock was never set is named, and the exit code is 1."""
    env = preloaded(tmp_path, OLD)

    told = doctor(profile(), env=env)

    assert told.code == 1
    assert any("clocks: the wall clock says 1970-01" in line for line in told["BAD"]), told.text
