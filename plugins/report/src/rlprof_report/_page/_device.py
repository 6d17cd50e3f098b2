"""Section 7: the devices in the traces of windows, by role."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof_report._page._chart import legend, strip
from rlprof_report._page._table import caption, figure, section, table, tabled
from rlprof_report._page._text import escaped, number, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof_report.device.values import Device, RoleDevice, TopName
    from rlprof_report.values import Analysis

_USE = (
    ("compute", "#44aa99"),
    ("communication, nothing computes", "#ee8866"),
    ("copies, nothing else runs", "#ddcc77"),
    ("idle", "#bbbbbb"),
)
_WHY = (
    ("the host had not launched it", "#ee8866"),
    ("launched, and waited", "#4477aa"),
    ("gaps below 10 µs", "#bbbbbb"),
    ("unknown", "#777777"),
)


def device(analysis: Analysis) -> str:
    """Return the section; empty if no window has a trace with a device in it."""
    device: Device | None = analysis.device
    if device is None:
        return ""
    body = _use(device) + _idle(device)
    body += "".join(_top(role, role.kernels, "kernels") for role in device.roles)
    words = "host operators, self time"
    body += "".join(_top(role, role.operators, words) for role in device.roles)
    body += _late(device) + _memory(device) + _requests(device)
    notes = "".join(f"<li>{escaped(note, 400)}" for note in device.notes[:40])
    return section("device", "Devices", body + (f"<ul>{notes}</ul>" if notes else ""))


def _use(device: Device) -> str:
    rows = []
    for role in device.roles:
        time = role.temporal
        if time is None or not time.window_s:
            continue
        used = time.compute_s, time.exposed_communication_s, time.exposed_copy_s, time.idle_s
        rows.append(
            (
                escaped(role.role, 60),
                f"{role.captures:,}",
                _bar(_USE, used, time.window_s),
                seconds(time.window_s),
                percent(time.compute_s / time.window_s),
                percent(time.exposed_communication_s / time.window_s),
                percent(time.overlap),
                percent(time.idle_s / time.window_s),
            )
        )
    heads = (
        "role", "traces", "device time", "sum", "compute", "exposed communication",
        "communication hidden", "idle",
    )  # fmt: skip
    if not rows:
        return ""
    return figure(
        table(heads, rows, words=(0, 2)) + legend(_USE),
        caption((16,), "Windows with traces, clipped to the window"),
    )


def _bar(parts: Iterable[tuple[str, str]], values: Sequence[float], whole: float) -> str:
    drawn = [
        (color, value / whole, f"{name}: {seconds(value)}")
        for (name, color), value in zip(parts, values, strict=True)
    ]
    return strip(drawn, label=", ".join(words for _, _, words in drawn))


def _idle(device: Device) -> str:
    rows = [
        (
            escaped(role.role, 60),
            _bar(_WHY, attrs.astuple(role.idle), sum(attrs.astuple(role.idle))),
            *(seconds(one) for one in attrs.astuple(role.idle)),
        )
        for role in device.roles
        if role.idle is not None and sum(attrs.astuple(role.idle)) > 0
    ]
    if not rows:
        return ""
    heads = ("role", "idle before kernels, by cause", *(name for name, _ in _WHY))
    return figure(
        table(heads, rows, words=(0, 1)) + legend(_WHY),
        caption((17,), "Windows with traces"),
    )


def _top(role: RoleDevice, names: tuple[TopName, ...], what: str) -> str:
    rows = [
        (
            f'<span class="long">{escaped(one.name, 160)}</span>',
            escaped(one.kind),
            seconds(one.total_s),
            percent(one.share),
            f"{one.count:,}",
            seconds(one.median_s),
        )
        for one in names
    ]
    if not rows:
        return ""
    wide = 6 if any(one.median_s is not None for one in names) else 5
    heads = ("name", "kind", "total", "share", "calls", "median")[:wide]
    return figure(
        f"<h3>{escaped(role.role, 60)}: {what}</h3>"
        + table(heads, [row[:wide] for row in rows], words=(0, 1)),
        caption((19,), f"All traces of {role.role}, clipped to their windows"),
    )


def _late(device: Device) -> str:
    rows = [
        (
            escaped(f"{one.role} {one.window}", 100),
            f"{one.rank}",
            seconds(one.late_s),
            f"{one.votes:,} of {one.collectives:,}",
        )
        for one in device.late[:12]
    ]
    heads = ("window", "rank", "late in all", "came last to")
    window = "Windows with traces of two ranks or more"
    return tabled(heads, rows, (18,), window)


def _memory(device: Device) -> str:
    rows = [
        (
            escaped(role.role, 60),
            escaped(peak.device, 40),
            f"{number(peak.allocated_bytes)}B",
            f"{number(peak.reserved_bytes)}B",
        )
        for role in device.roles
        for peak in role.memory
    ]
    heads = ("role", "device", "allocated", "reserved")
    return tabled(heads, rows, (20,), "Peaks in windows", words=(0, 1))


def _requests(device: Device) -> str:
    rows = [
        (
            escaped(one.target, 80),
            f"{one.finished:,} of {one.count:,}",
            f"{seconds(one.queue_p50_s)}, {seconds(one.queue_p99_s)}",
            f"{seconds(one.first_token_p50_s)}, {seconds(one.first_token_p99_s)}",
            number(one.preemptions),
        )
        for one in device.requests[:64]
    ]
    heads = ("replica", "finished", "in queue, p50, p99", "first token, p50, p99", "preemptions")
    return tabled(heads, rows, (15,), "Windows that recorded requests")
