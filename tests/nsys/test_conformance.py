"""The tool `nsys` passes the plugin test kit; `tests/nsys_real` runs this under the real nsys."""

import os

from rlprof.testing import ToolTests
from rlprof_nsys import Nsys


class TestNsys(ToolTests):
    plugin = Nsys
    options = {"trace": ["nvtx", "osrt"], "options": {"osrt-threshold": 1000}}
    produces = "trace"

    @property
    def works_here(self):
        if "NSYS_PROFILING_SESSION_ID" in os.environ:
            return True
        return "needs a process that was started under nsys; tests/nsys_real is one"
