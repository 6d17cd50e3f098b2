"""The exporter `timeline` keeps every law of exporters."""

from __future__ import annotations

import pytest

from rlprof.testing import ExporterTests
from rlprof_timeline import Timeline

pytestmark = pytest.mark.slow


class TestTimeline(ExporterTests):
    plugin = Timeline
