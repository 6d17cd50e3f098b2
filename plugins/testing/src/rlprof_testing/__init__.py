"""The conformance kit: classes to inherit, whose tests are the contract of a plugin.

    from rlprof.testing import ToolTests

    class TestMine(ToolTests):
        plugin = Mine
        options = {"hz": 100}

`ToolTests`, `EngineTests`, `ExporterTests`. The docstring of each test is the law it checks. Next
to `plugin`, declare what your plugin can and cannot do: the kit never guesses. To replace a
standard test, give a reason: `@overrides("why")`. Run the tests with pytest.

`_plugin`: plugins of all kinds · `_options`, `_exports`, `_windows`: tools and engines · `_trace`:
the rules of a trace · `_drive` calls hooks as core does · `_inside`: the arguments of an engine
that drives · `_runs`: runs for exporters.
"""

from __future__ import annotations

import pytest

_LAWS = (
    "_plugin", "_options", "_exports", "_windows", "_trace", "_drive", "_tool", "_engine",
    "_exporter",
)  # fmt: skip

# Before they are imported, so that a failing assertion shows its values.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _LAWS))

from rlprof_testing._engine import EngineTests  # noqa: E402
from rlprof_testing._exporter import ExporterTests  # noqa: E402
from rlprof_testing._plugin import overrides  # noqa: E402
from rlprof_testing._tool import ToolTests  # noqa: E402

__all__ = ["EngineTests", "ExporterTests", "ToolTests", "overrides"]
