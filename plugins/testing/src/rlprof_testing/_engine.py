"""The kit for an engine: the laws it shares with tools, and laws for a process that may die."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import rlprof
from rlprof import plugins
from rlprof.errors import CaptureError
from rlprof.session._loops import Link
from rlprof.types import Launch, Target, Workers
from rlprof_testing._drive import FIRST, PATIENT, SECOND, Driven, structured
from rlprof_testing._inside import TOOL, leading, linked, offer_tool
from rlprof_testing._windows import WindowTests

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rlprof_run import Run


class EngineTests(WindowTests):
    """Inherit this, name your class, define how to make an engine, and every law is tested.

    class TestMine(EngineTests):
        plugin = Mine

        @contextmanager
        def engine(self):
            with Engine(**self.launch().engine_args) as handle:
                yield handle

        def work(self, handle):
            return handle.generate("1 + 1 =")

        def kill(self, handle):
            handle.process.kill()

    Declare next to them, if it applies: `produces`, `works_here`, `cannot_be_killed`,
    `tool_inside`, `heavy`, `name`.
    """

    kind = "engine"

    cannot_be_killed: ClassVar[str] = ""
    """Why the engine cannot die alone, e.g. because it is in the trainer's process."""
    tool_inside: ClassVar[str] = TOOL
    """The tool that records inside an engine that `drives`; by default, the tool of the kit."""

    def engine(self) -> AbstractContextManager[Any]:
        """Start an engine, yield its handle as `prof.attach` gets it, and end it."""
        pytest.fail("the kit needs an engine; define engine(self), with @contextmanager")

    def loop(self, handle: Any) -> asyncio.AbstractEventLoop | None:  # noqa: ARG002
        """Return the event loop the handle belongs to, as `attach(loop=...)` gets it."""
        return None

    def work(self, handle: Any) -> Any:  # noqa: ARG002
        """Let the engine generate a little; return a result that is the same every time."""
        pytest.fail("the kit needs work for the engine; define work(self, handle)")

    def kill(self, handle: Any) -> None:  # noqa: ARG002
        """End the engine at once, as the out-of-memory killer does, and return when it is dead."""
        pytest.fail(
            "the kit must kill the engine; define kill(self, handle), or, if it cannot die alone, "
            'give the reason: cannot_be_killed = "..."'
        )

    def launch(self) -> Launch:
        """Return the plugin's `Launch`: what the engine must start with."""
        options = structured(self.plugin, dict(self.options))
        hooks = plugins.hooks(self.plugin())
        target = Target("rollout", replica=0)
        given = {"handle": None, "workers": Workers(self.inside())}
        found = hooks.configure(place="launch", target=target, options=options, **given)
        return found or Launch()

    def config_of(self, name: str, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return a config that records every step of one replica; inside it, if it is driven."""
        role: dict[str, Any] = {"engine": name}
        if self.inside():
            role["tool"] = list(self.inside())
        return {
            "steps": {"every": 1},
            "roles": {"rollout": role},
            "engines": {name: dict(options)},
            "limits": PATIENT,
        } | more

    def inside(self) -> dict[str, dict[str, Any]]:
        """Return the tools that record inside the engine, if the plugin drives it."""
        return {self.tool_inside: {}} if getattr(self.plugin, "drives", False) else {}

    @pytest.fixture(autouse=True)
    def _with_a_tool_inside(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Install the tool where the engine's processes can import it."""
        if self.inside():
            offer_tool(tmp_path / "kit-site", monkeypatch)

    @pytest.fixture(name="driven")
    def _driven(self, called: str, tmp_path: Path) -> Iterator[Driven]:
        """Start an engine, and one instance of the plugin that reaches it."""
        self.skip_where_it_cannot_run()
        with ExitStack() as whole, ExitStack() as stack:
            config = self._placed(called, tmp_path)
            prof = whole.enter_context(leading(config)) if self.inside() else None
            handle = stack.enter_context(self.engine())
            loop = self.loop(handle)
            link = Link(handle, loop) if prof is None else linked(prof, config, handle, loop)
            yield Driven(
                "engine", self.plugin, called, dict(self.options), tmp_path / "scratch",
                link=link, end=stack.close,
            ).configure()  # fmt: skip

    def _placed(self, called: str, home: Path) -> dict[str, Any]:
        places = {"run_dir": str(home / "runs"), "scratch_dir": str(home / "sessions")}
        return self.config_of(called, self.options) | places

    def work_on(self, driven: Driven) -> Any:
        """Let the engine work."""
        return self.work(driven.link.handle if driven.link else None)

    def _kill(self, driven: Driven) -> None:
        if self.cannot_be_killed:
            pytest.skip(f"cannot be killed: {self.cannot_be_killed}")
        self.kill(driven.link.handle if driven.link else None)

    def test_a_new_instance_meets_an_engine_that_records(
        self, driven: Driven, called: str, tmp_path: Path
    ) -> None:
        """An instance made while a profile is in progress refuses to start, or records.

        The trainer may restart in the middle of a window while its engine runs on.
        """
        before = driven.prepare(FIRST)
        driven.start(before)
        link = driven.link
        other = Driven(
            "engine", self.plugin, called, dict(self.options), tmp_path / "other", link=link
        ).configure()

        other.stop(other.prepare(FIRST))
        try:
            other.start(other.prepare(FIRST))
        except CaptureError as exc:
            assert str(exc).strip(), "the CaptureError has no message; say what is in progress"
        other.stop(other.prepare(FIRST))

        assert self.work_on(driven) is not None, (
            "work(handle) returned None; return a result to compare"
        )

    def test_a_session_records_whole_windows(self, called: str, tmp_path: Path) -> None:
        """With `prof.attach` and the engine's name, every window is whole and has no notes."""
        self.skip_where_it_cannot_run()
        results: list[Any] = []
        with self.engine() as handle:
            alone = self.work(handle)

        run = self._session(called, tmp_path, results)

        own = [one for one in run.captures if one.target.worker is None]
        captured = [(one.window.id, one.target.replica, one.state) for one in own]
        assert captured == [("1/rollout", 0, "whole"), ("2/rollout", 0, "whole")], (
            f"not every window is whole: {[one.notes for one in own]}"
        )
        assert results[0] == alone, "the recorded engine gave another result; seed work()"
        assert run.problems == ()
        assert run.skipped == ()

    def test_each_process_of_a_driven_engine_records_itself(
        self, called: str, tmp_path: Path
    ) -> None:
        """With `drives`, each window leaves a whole capture of every process of the engine."""
        if not self.inside():
            pytest.skip("does not declare drives: no tool records inside it")
        self.skip_where_it_cannot_run()

        run = self._session(called, tmp_path, [])

        inside = [one for one in run.captures if one.target.worker is not None]
        there = {one.target.worker for one in inside}
        captured = sorted((one.window.id, str(one.target), one.state) for one in inside)
        assert there, (
            "no process of the engine left a capture; send the text of workers.prepare(), "
            "begin(window) and end(window) to each, and execute it there with rlprof.Order.read"
        )
        assert captured == sorted(
            (window, f"rollout replica 0 worker {number}", "whole")
            for window in ("1/rollout", "2/rollout")
            for number in there
        ), f"not every window inside is whole: {[one.notes for one in inside]}"

    def test_an_engine_that_dies_in_a_window_is_told(self, driven: Driven, tmp_path: Path) -> None:
        """If the engine died in the window, `stop` answers in time and no artifact is whole.

        `stop` returns or raises CaptureError. `export` then returns partial artifacts or none, or
        raises CaptureError. `start` of the next window raises CaptureError, and its `stop` is safe.
        """
        recorded, following = driven.prepare(FIRST), driven.prepare(SECOND)
        driven.start(recorded)
        self.work_on(driven)
        self._kill(driven)

        try:
            driven.stop(recorded)
        except CaptureError as exc:
            assert str(exc).strip(), "the CaptureError has no message; say that the engine is gone"
        except Exception as exc:
            message = f"stop raised {exc!r}; turn exceptions of the engine into CaptureError"
            raise AssertionError(message) from exc
        with pytest.raises(CaptureError) as refused:
            driven.start(following)
        with suppress(CaptureError):
            driven.stop(following)

        assert str(refused.value).strip(), "the CaptureError has no message; say that it is gone"
        what = "those of a dead engine"
        self._is_honest(recorded, tmp_path / "out", what, may_be_empty=True)

    def _session(self, called: str, home: Path, results: list[Any]) -> Run:
        """Record two steps of work as a trainer does, and return the run."""
        with (
            self.engine() as handle,
            rlprof.open(self._placed(called, home), role="trainer", rank=0, world_size=1) as prof,
        ):
            prof.attach(handle, role="rollout", replica=0, loop=self.loop(handle))
            for _ in prof.steps((1, 2)):
                with prof.phase("rollout"):
                    results.append(self.work(handle))
        assert isinstance(prof, rlprof.Session), "rlprof is off; see its log"
        return rlprof.read(prof.run_dir)
