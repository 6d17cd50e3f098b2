"""Figures of devices from the traces of a run's windows: figures 15 to 20 of the report.

`device_of(run)` reads every trace once, 120 MB of JSON a second: call it only to show the figures.
"""

from __future__ import annotations

from rlprof_report.device._device import device_of, json_bytes
from rlprof_report.device._findings import device_findings, late_in

__all__ = ["device_findings", "device_of", "json_bytes", "late_in"]
