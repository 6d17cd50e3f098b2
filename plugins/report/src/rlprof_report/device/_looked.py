"""One trace of a run, looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rlprof_report.device._trace import TraceFigures
    from rlprof_report.device.values import CaptureDevice


@attrs.frozen(eq=False)
class Looked:
    """What it says, for its own line and for the sums of its role."""

    shown: CaptureDevice
    found: TraceFigures
