"""The tool `stacks` keeps every law of tools."""

from __future__ import annotations

from rlprof.testing import ToolTests
from rlprof_stacks import Stacks


class TestStacks(ToolTests):
    plugin = Stacks
    options = {"hz": 100, "depth": 40}
