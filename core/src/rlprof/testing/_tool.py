"""The kit for a tool, put together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from rlprof.testing._drive import FIRST
from rlprof.testing._sessions import SessionTests

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof.testing._drive import Recorded


class ToolTests(SessionTests):
    """Inherit it, name your class, and every law of a tool is tested.

    class TestMine(ToolTests):
        plugin = Mine
        options = {"hz": 100}

    Declare beside them what is so: `produces`, `works_here`, `heavy`, `name`; override `work`
    with something the tool can record.
    """

    kind = "tool"

    def recorded(self, called: str, home: Path) -> Recorded:
        """Record one window of work."""
        driven = self._driven(called, home)
        return self._record(driven, driven.prepare(FIRST))

    def never_closed(self, called: str, home: Path) -> Recorded:
        """Copy the folder in the midst of a window, as a kill -9 leaves it."""
        driven = self._driven(called, home / "alive")
        recorded = driven.prepare(FIRST)
        on = self._on_its_thread(driven)
        on(lambda: driven.start(recorded))
        self.work()
        copy = recorded.copy(home / "killed")
        on(lambda: driven.stop(recorded))
        return copy

    def test_a_sample_ends(self) -> None:
        """`sample`, if there is one, does typical work for about as long as it is told to."""
        sample: Any = getattr(self.plugin, "sample", None)
        if sample is None:
            pytest.skip("declares no sample(seconds): work to calibrate the tool with")
        self._skip_where_it_cannot_run()
        began = time.monotonic()
        sample(0.1)
        took = time.monotonic() - began

        assert took < 30, f"sample(0.1) took {took:.0f} s; look at the clock while it works"
