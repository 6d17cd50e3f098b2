"""Whether the clocks can be trusted: a timeline of several hosts uses their wall clocks."""

from __future__ import annotations

import ctypes
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof_cli.doctor._finding import Finding, unless_wrong

if TYPE_CHECKING:
    from rlprof.types import Clock

_EARLIEST, _LATEST = 1_577_836_800, 4_102_444_800
"""2020-01-01 and 2100-01-01: outside of these, the clock was never set."""
_DRIFT_PPM = 500
"""NTP slews a clock by at most this; a larger change was a step."""
_SLOW_SOURCES = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})
"""Clock sources whose reading takes microseconds, not nanoseconds."""
_WIDE_NS = 100_000
"""Two readings in a row lie 100 ns apart on a healthy machine."""
_UNSYNCHRONISED = 0x40
"""STA_UNSYNC of adjtimex."""
_MANY_HOSTS = "for a run on several hosts, start chrony or ntpd on each (outside of containers)"


def look_at_clocks(before: Clock, after: Clock, kernel: int) -> list[Finding]:
    """Judge the clocks by two readings and by the *kernel*'s status bits."""
    wrong = []
    seconds = after.realtime_ns // 10**9
    if not _EARLIEST <= seconds < _LATEST:
        what = f"the wall clock says {time.strftime('%Y-%m-%d', time.gmtime(seconds))}"
        wrong.append(Finding("BAD", "clocks", what, "set it; runs and hosts are ordered by it"))
    wrong += _steps(before, after)
    if after.bound_ns > _WIDE_NS:
        what = f"reading both takes {after.bound_ns / 1000:.0f} us"
        advice = "expect that error in every time; look for an emulated or overloaded machine"
        wrong.append(Finding("warn", "clocks", what, advice))
    source = _source()
    if source in _SLOW_SOURCES:
        what = f"is {source}: every reading takes microseconds, so spans cost more"
        advice = "let the kernel use tsc (see /sys/devices/system/clocksource)"
        wrong.append(Finding("warn", "clock source", what, advice))
    if kernel & _UNSYNCHRONISED:
        what = "the kernel reports the wall clock as unsynchronised"
        wrong.append(Finding("warn", "clocks", what, _MANY_HOSTS))
    return unless_wrong("clocks", f"steady and synchronised ({source or 'source unknown'})", wrong)


def _steps(before: Clock, after: Clock) -> list[Finding]:
    """Compare how far both clocks advanced between two readings."""
    span = after.monotonic_ns - before.monotonic_ns
    drift = after.realtime_ns - before.realtime_ns - span
    if abs(drift) <= span * _DRIFT_PPM // 1_000_000 + before.bound_ns + after.bound_ns:
        return []
    what = (
        f"the wall clock moved {drift / 1e6:+.3f} ms against the monotonic one "
        f"within {span / 1e9:.1f} s"
    )
    return [Finding("warn", "clocks", what, "let NTP settle before a run over several hosts")]


def kernel_status() -> int:
    """Read the status bits of the kernel, changing nothing; 0 if it has none (gVisor)."""
    timex = ctypes.create_string_buffer(512)  # modes 0: read only; the struct has 208 bytes
    if ctypes.CDLL(None).adjtimex(timex) < 0:
        return 0
    (status,) = struct.unpack_from("=40xi", timex.raw)  # after modes and four longs
    return int(status)


def _source() -> str:
    base = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    try:
        return base.read_text().strip()
    except OSError:
        return ""
