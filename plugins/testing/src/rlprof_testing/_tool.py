"""The kit for a tool: the laws it shares with engines, and the laws of sessions."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

import rlprof
from rlprof import plugins
from rlprof.config import check_config
from rlprof.errors import CaptureError, ConfigError
from rlprof_testing._drive import FIRST, PATIENT, SECOND, Driven, elsewhere
from rlprof_testing._windows import WindowTests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof_run import Run

_SAMPLE_S = 30
"""Longer than any round takes, even if it imports torch."""


class ToolTests(WindowTests):
    """Inherit this, name your class, and every law of a tool is tested.

    class TestMine(ToolTests):
        plugin = Mine
        options = {"hz": 100}

    Declare next to them, if it applies: `produces`, `works_here`, `heavy`, `name`; override `work`
    with something the tool can record.
    """

    kind = "tool"

    def work(self) -> Any:
        """Do something the tool can record, and return the same result every time.

        Override this, e.g. with a seeded training step. The kit compares results with `==`.
        """
        import random

        chance = random.Random(7)  # noqa: S311 -- needs only a fixed seed
        return sorted(chance.random() for _ in range(20_000))[::1000]

    def work_on(self, driven: Driven) -> Any:  # noqa: ARG002 -- a tool records this process
        """Do the work in this process."""
        return self.work()

    @pytest.fixture(name="driven")
    def _driven(self, called: str, tmp_path: Path) -> Driven:
        """Make one instance and configure it inside the process."""
        self.skip_where_it_cannot_run()
        home = tmp_path / "scratch"
        return Driven("tool", self.plugin, called, dict(self.options), home).configure()

    def config_of(self, name: str, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return a config that records every step of one actor with the tool."""
        return {
            "tool": name,
            "steps": {"every": 1},
            "roles": {"actor": {}},
            "tools": {name: dict(options)},
            "limits": PATIENT,
        } | more

    def _session(self, config: Mapping[str, Any], home: Path, steps: int = 2) -> tuple[Run, Any]:
        """Work for some steps in a session; return the run and the results of the work."""
        places = {"run_dir": str(home / "runs"), "scratch_dir": str(home / "scratch")}
        results = []
        with rlprof.open({**config, **places}, role="actor", rank=0, world_size=1) as prof:
            for _ in prof.steps(range(1, steps + 1)):
                with prof.phase("update_actor"):
                    results.append(self.work())
        assert isinstance(prof, rlprof.Session), "rlprof is off; see its log"
        return rlprof.read(prof.run_dir), results

    def test_a_window_of_an_ended_thread_harms_nobody(self, driven: Driven, tmp_path: Path) -> None:
        """If the thread of `start` has ended, `stop` works or refuses; the next window records."""
        recorded = driven.prepare(FIRST)
        elsewhere(lambda: driven.start(recorded))

        try:
            driven.stop(recorded)
        except CaptureError as exc:
            assert str(exc), "the CaptureError has no message; say where to stop the window"

        following = self.record(driven, SECOND)
        assert self._has_data(following, tmp_path / "out"), (
            "after a window of another thread, the next recorded nothing; release windows in stop"
        )

    def test_a_session_records_whole_windows(self, called: str, tmp_path: Path) -> None:
        """With `rlprof.open` and the tool's name, every window is whole and has no notes."""
        self.skip_where_it_cannot_run()

        run, _ = self._session(self.config_of(called, self.options), tmp_path)

        captured = [(capture.window.id, capture.state) for capture in run.captures]
        assert captured == [("1/update_actor", "whole"), ("2/update_actor", "whole")], (
            f"not every window is whole: {[capture.notes for capture in run.captures]}"
        )
        assert run.problems == ()
        assert run.skipped == ()

    def test_recording_does_not_change_the_work(self, called: str, tmp_path: Path) -> None:
        """The result of seeded work is the same with the tool and without it."""
        self.skip_where_it_cannot_run()
        alone = self.work()
        assert alone == self.work(), "work() gives a different result every time; seed it"

        _, results = self._session(self.config_of(called, self.options), tmp_path)

        assert [alone, alone] == results, (
            "the tool changes the work it records; draw no random numbers, change no global state, "
            "and raise nothing into the work"
        )

    def test_two_at_once_are_refused_or_both_record(
        self, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two such tools in one process both work, or their claims refuse them before the run."""
        self.skip_where_it_cannot_run()
        again = f"{called}_again"
        monkeypatch.setitem(plugins._registered, ("tool", again), self.plugin)
        options = {called: dict(self.options), again: dict(self.options)}
        config = self.config_of(called, {}, tool=[called, again], tools=options)

        try:
            check_config(config)
        except ConfigError as exc:
            claims = getattr(self.plugin, "claims", {})
            assert claims, f"two are refused, but the plugin has no claims: {exc}"
            assert any(claim in str(exc) for claim in claims), str(exc)
            return

        run, _ = self._session(config, tmp_path, steps=1)
        captured = {capture.tool: capture.state for capture in run.captures}
        assert captured == {called: "whole", again: "whole"}, (
            "two such tools harm each other; claim the resource that only one can use, e.g. "
            'claims = {"my_profiler": "process"}: '
            f"{[capture.notes for capture in run.captures]}"
        )

    def test_it_leaves_processes_of_rlprof_alone(self) -> None:
        """`leave_alone`, if there is one, only removes variables from an environment."""
        leave_alone: Any = getattr(self.plugin, "leave_alone", None)
        if leave_alone is None:
            pytest.skip("declares no leave_alone(environ): it does not get into child processes")
        environ = {"PATH": "/bin", "MINE": "1", **os.environ}
        for given in (dict(environ), {}):
            left = dict(given)
            leave_alone(left)
            put = [name for name in left if name not in given]
            assert put == [], f"leave_alone adds {', '.join(put)} to the environment; only remove"
            lost = [name for name in ("PATH", "MINE") if name in given and name not in left]
            assert lost == [], f"leave_alone removes {', '.join(lost)}, which is not the tool's"

    def test_a_sample_ends(self) -> None:
        """`sample`, if there is one, does the given number of rounds of typical work."""
        sample: Any = getattr(self.plugin, "sample", None)
        if sample is None:
            pytest.skip("declares no sample(rounds), the work that estimates its cost")
        self.skip_where_it_cannot_run()
        took = []
        for rounds in (1, 3):
            began = time.monotonic()
            sample(rounds)
            took.append(time.monotonic() - began)

        assert max(took) < _SAMPLE_S, (
            f"3 rounds took {max(took):.0f} s; a round should take milliseconds"
        )
