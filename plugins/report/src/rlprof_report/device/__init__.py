"""What the traces of a run's windows say of devices: figures 15 to 20 of the report."""

from __future__ import annotations

from rlprof_report.device.values import (
    CaptureDevice,
    Device,
    Idle,
    LateRank,
    MemoryPeak,
    RequestTimes,
    RoleDevice,
    Temporal,
    TopName,
)

__all__ = [
    "CaptureDevice",
    "Device",
    "Idle",
    "LateRank",
    "MemoryPeak",
    "RequestTimes",
    "RoleDevice",
    "Temporal",
    "TopName",
]
