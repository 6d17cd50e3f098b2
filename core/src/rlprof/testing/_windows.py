"""What `start` and `stop` of a tool are held to, in the process they record."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rlprof.errors import CaptureError
from rlprof.testing._drive import FIRST, SECOND, Driven, Recorded, export_here
from rlprof.testing._exports import ExportTests
from rlprof.testing._runs import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_RUNS_ON = ("thread", "process", "node")
_SCOPES = ("thread", "process", "device", "node")


class WindowTests(ExportTests):
    """Laws of windows."""

    def work(self) -> Any:
        """Do something the tool can record, and return a result that is the same every time.

        Override it: a seeded step of training for a tool that records training. The result is
        compared with `==`.
        """
        import random

        chance = random.Random(7)  # noqa: S311 -- only to be the same every time
        return sorted(chance.random() for _ in range(20_000))[::1000]

    def _driven(self, called: str, home: Path) -> Driven:
        self._skip_where_it_cannot_run()
        driven = Driven("tool", self.plugin, called, dict(self.options), home)
        return driven.configure()

    def _record(self, driven: Driven, recorded: Recorded) -> Recorded:
        """Record one window of work, on the threads core would use."""
        on = self._on_its_thread(driven)
        on(lambda: driven.start(recorded))
        self.work()
        return on(lambda: driven.stop(recorded))  # type: ignore[no-any-return]

    def _on_its_thread(self, driven: Driven) -> Callable[[Callable[[], Any]], Any]:
        """Call here what runs on the thread, elsewhere what runs on the process, as core does."""
        if getattr(driven.instance, "runs_on", "thread") == "thread":
            return lambda function: function()
        return _elsewhere

    def _has_data(self, driven: Driven, recorded: Recorded, out: Path) -> bool:
        return bool(export_here("tool", type(driven.instance), recorded, out))

    def test_runs_on_and_claims_are_words_core_knows(self, called: str, tmp_path: Path) -> None:
        """`runs_on` is thread, process or node; `claims` maps a resource to whose it is."""
        driven = self._driven(called, tmp_path)
        runs_on = getattr(driven.instance, "runs_on", "thread")
        claims = getattr(driven.instance, "claims", {})

        assert runs_on in _RUNS_ON, f"runs_on is {runs_on!r}; choose one of {', '.join(_RUNS_ON)}"
        for what, whose in claims.items():
            assert isinstance(what, str), f"claims names {what!r}; name the resource in words"
            assert whose in _SCOPES, f"claims {what!r} per {whose!r}; choose of {_SCOPES}"

    def test_a_window_is_recorded(self, called: str, tmp_path: Path) -> None:
        """Configured, started, stopped: the work in between can be exported."""
        driven = self._driven(called, tmp_path)

        recorded = self._record(driven, driven.prepare(FIRST))

        assert self._has_data(driven, recorded, tmp_path / "out"), (
            "export made nothing of a window of work(); override work() with something this tool "
            "can record, or mend start, stop or export"
        )

    def test_start_says_what_it_applied_in_words(self, called: str, tmp_path: Path) -> None:
        """What `start` returns is nothing, or an object with sound members of a Recording."""
        driven = self._driven(called, tmp_path)
        recorded = driven.prepare(FIRST)
        on = self._on_its_thread(driven)
        recording = on(lambda: driven.start(recorded))
        on(lambda: driven.stop(recorded))

        for name in ("applied", "unsupported"):
            value = getattr(recording, name, {})
            assert isinstance(value, Mapping), f"Recording.{name} is {value!r}, no mapping"
        for option, reason in getattr(recording, "unsupported", {}).items():
            assert isinstance(reason, str), f"unsupported[{option!r}] gives no reason in words"
            assert reason.strip(), f"unsupported[{option!r}] gives no reason; say why"
        for name in ("push", "pop", "minibatch"):
            member = getattr(recording, name, None)
            assert member is None or callable(member), f"Recording.{name} cannot be called"

    def test_stop_without_start_is_harmless(self, called: str, tmp_path: Path) -> None:
        """`stop` raises nothing where no window was started."""
        driven = self._driven(called, tmp_path)
        recorded = driven.prepare(FIRST)

        self._on_its_thread(driven)(lambda: driven.stop(recorded))

    def test_a_second_stop_is_harmless(self, called: str, tmp_path: Path) -> None:
        """A second `stop` raises nothing and takes nothing of the window away."""
        driven = self._driven(called, tmp_path)
        recorded = self._record(driven, driven.prepare(FIRST))

        self._on_its_thread(driven)(lambda: driven.stop(recorded))

        assert self._has_data(driven, recorded, tmp_path / "out"), "the second stop lost the window"

    def test_windows_follow_each_other(self, called: str, tmp_path: Path) -> None:
        """One instance records window after window, each into its own folder."""
        driven = self._driven(called, tmp_path)
        first = self._record(driven, driven.prepare(FIRST))
        second = self._record(driven, driven.prepare(SECOND))

        assert self._has_data(driven, first, tmp_path / "one"), "the second window lost the first"
        assert self._has_data(driven, second, tmp_path / "two"), (
            "the second window recorded nothing; leave nothing behind in stop"
        )

    def test_a_failed_start_leaves_nothing_behind(self, called: str, tmp_path: Path) -> None:
        """After a start that failed, `stop` raises nothing and the next window is recorded."""
        driven = self._driven(called, tmp_path)
        (tmp_path / "file").touch()
        nowhere = tmp_path / "file" / "raw"  # no one can write here, not even root
        failed = driven.prepare(SECOND)
        on = self._on_its_thread(driven)
        try:
            on(lambda: driven.start(failed, nowhere))
            has_failed = False
        except Exception:
            has_failed = True

        try:
            on(lambda: driven.stop(failed, nowhere))
        except Exception as exc:
            assert not has_failed, (
                f"stop raised {exc!r} after start had failed; stop is called then too, and must be "
                "safe"
            )

        recorded = self._record(driven, driven.prepare(FIRST))
        assert self._has_data(driven, recorded, tmp_path / "out"), (
            "the window after a failed one recorded nothing; undo in `start` what it had begun "
            "when it fails, and in `stop` first of all forget the window"
        )

    def test_a_second_start_is_refused_or_harmless(self, called: str, tmp_path: Path) -> None:
        """A start while a window is open raises CaptureError, or does the first no harm."""
        driven = self._driven(called, tmp_path)
        first, second = driven.prepare(FIRST), driven.prepare(SECOND)
        on = self._on_its_thread(driven)
        on(lambda: driven.start(first))
        try:
            on(lambda: driven.start(second))
        except CaptureError as exc:
            assert str(exc), "the CaptureError says nothing; say that a window is open"
        self.work()
        on(lambda: driven.stop(first))

        assert self._has_data(driven, first, tmp_path / "out"), (
            "a second start took the data of the first; refuse it: "
            'raise CaptureError("a window is open already")'
        )

    def test_ranges_may_have_any_name(self, called: str, tmp_path: Path) -> None:
        """Phases of any name, nested and left open, on any thread: the window is exported."""
        driven = self._driven(called, tmp_path)
        recorded = driven.prepare(FIRST)
        on = self._on_its_thread(driven)
        recording = on(lambda: driven.start(recorded))
        push, pop = getattr(recording, "push", None), getattr(recording, "pop", None)
        for member in (push, pop):
            if member is None:
                on(lambda: driven.stop(recorded))
                pytest.skip("its Recording has no push and pop: phases are not shown in it")

        def ranges() -> None:
            for number, name in enumerate(HOSTILE):
                push(name, {"step": 7, "occurrence": number})  # type: ignore[misc]
            for _ in HOSTILE:
                pop()  # type: ignore[misc]

        ranges()
        _elsewhere(ranges)
        push("left open", {"step": 7, "occurrence": 0})  # type: ignore[misc]
        self.work()
        recorded = on(lambda: driven.stop(recorded))

        self._look_at(export_here("tool", self.plugin, recorded, tmp_path / "out"), recorded,
                      tmp_path / "out")  # fmt: skip

    def test_minibatches_may_be_told(self, called: str, tmp_path: Path) -> None:
        """A Recording that wants to hear of mini-batches can be told of many."""
        driven = self._driven(called, tmp_path)
        recorded = driven.prepare(FIRST)
        on = self._on_its_thread(driven)
        recording = on(lambda: driven.start(recorded))
        minibatch = getattr(recording, "minibatch", None)
        if minibatch is not None:
            for _ in range(3):
                self.work()
                minibatch()
        self.work()
        recorded = on(lambda: driven.stop(recorded))

        assert self._has_data(driven, recorded, tmp_path / "out"), "mini-batches lost the window"


def _elsewhere(function: Callable[[], Any]) -> Any:
    """Call *function* on a thread of its own, and return or raise what it does."""
    result: list[Any] = []

    def call() -> None:
        try:
            result.append((function(), None))
        except BaseException as exc:
            result.append((None, exc))

    thread = threading.Thread(target=call, name="rlprof-kit")
    thread.start()
    thread.join()
    value, error = result[0]
    if error is not None:
        raise error
    return value
