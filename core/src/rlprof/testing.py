"""The conformance kit, from rlprof-testing: classes that the tests of a plugin inherit."""

from __future__ import annotations

from rlprof.distributions import load

load("rlprof_testing", asked="testing")

from rlprof_testing import EngineTests, ExporterTests, ToolTests, overrides  # noqa: E402

__all__ = ["EngineTests", "ExporterTests", "ToolTests", "overrides"]
