"""The laws of `start` and `stop` for tools and engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from rlprof.errors import CaptureError
from rlprof_testing._drive import FIRST, SECOND, elsewhere, structured
from rlprof_testing._exports import ExportTests
from rlprof_testing._runs import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof_testing._drive import Driven, Recorded

MEMBERS = ("push", "pop", "minibatch", "applied", "unsupported")
"""The members of a Recording; each is optional."""
_RUNS_ON = ("thread", "process", "node")
_SCOPES = ("thread", "process", "device", "node")


def _words(value: Any) -> Iterator[str]:
    """Yield all strings in *value*, which is plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (str(key), *_words(item))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _words(item)


class WindowTests(ExportTests):
    """Laws of windows."""

    def _has_data(self, recorded: Recorded, out: Path) -> bool:
        return bool(self._export(recorded, out))

    def test_runs_on_and_claims_are_words_core_knows(self, driven: Driven) -> None:
        """`runs_on` is thread, process or node; `claims` maps a resource to its scope."""
        runs_on = driven.runs_on
        claims = getattr(driven.instance, "claims", {})

        assert runs_on in _RUNS_ON, f"runs_on is {runs_on!r}; choose one of {', '.join(_RUNS_ON)}"
        for what, whose in claims.items():
            assert isinstance(what, str), (
                f"claims has the key {what!r}; name the resource with a string"
            )
            assert whose in _SCOPES, f"claims {what!r} per {whose!r}; choose one of {_SCOPES}"

    def test_a_window_is_recorded(self, recorded: Recorded, tmp_path: Path) -> None:
        """After configure, start, work and stop, the work can be exported."""
        assert self._has_data(recorded, tmp_path / "out"), (
            "export made nothing from a window of work(); override work() with something that the "
            "plugin can record, or fix start, stop or export"
        )

    def test_start_says_what_it_applied_in_words(self, driven: Driven) -> None:
        """`start` returns None, or an object with valid members of a Recording."""
        recorded = driven.prepare(FIRST)
        recording = driven.start(recorded)
        driven.stop(recorded)

        assert recording is None or any(hasattr(recording, name) for name in MEMBERS), (
            f"start returned {recording!r}, which has none of {', '.join(MEMBERS)}; return a "
            "Recording or None"
        )
        for name in ("applied", "unsupported"):
            value = getattr(recording, name, {})
            assert isinstance(value, Mapping), f"Recording.{name} is {value!r}, not a mapping"
        for option, reason in getattr(recording, "unsupported", {}).items():
            assert isinstance(reason, str), (
                f"unsupported[{option!r}] must give its reason as a string"
            )
            assert reason.strip(), f"unsupported[{option!r}] gives no reason; say why"
        for name in ("push", "pop", "minibatch"):
            member = getattr(recording, name, None)
            assert member is None or callable(member), f"Recording.{name} is not callable"

    def test_what_cannot_be_had_was_asked(self, driven: Driven) -> None:
        """A key of `unsupported` is an option, a value of an option, or a tool inside an engine.

        A part of an option stands behind it: `iterations: skip`.
        So readers of the run find it in the config. `applied` may have keys that the config lacks:
        settings that took effect, such as the devices, in terms of the tool.
        """
        recorded = driven.prepare(FIRST)
        recording = driven.start(recorded)
        driven.stop(recorded)

        asked = attrs.asdict(structured(self.plugin, dict(self.options)))
        inside = () if driven.link is None else driven.link.workers.tools
        words = {*asked, *_words(asked), *inside}
        said = getattr(recording, "unsupported", None) or {}
        odd = [key for key in said if key not in words and key.partition(": ")[0] not in asked]
        assert odd == [], (
            f"unsupported names {', '.join(map(repr, odd))}, which is neither an option nor a "
            f"value of one; name the options that are unsupported (options: {', '.join(asked)})"
        )

    def test_stop_without_start_is_harmless(self, driven: Driven) -> None:
        """`stop` raises nothing if no window was started."""
        recorded = driven.prepare(FIRST)

        driven.stop(recorded)

    def test_a_second_stop_is_harmless(self, driven: Driven, tmp_path: Path) -> None:
        """A second `stop` raises nothing and loses no data of the window."""
        recorded = self.record(driven)

        driven.stop(recorded)

        assert self._has_data(recorded, tmp_path / "out"), "the second stop lost the window"

    def test_windows_follow_each_other(self, driven: Driven, tmp_path: Path) -> None:
        """One instance records several windows, each into a separate folder."""
        first = self.record(driven)
        second = self.record(driven, SECOND)

        assert self._has_data(first, tmp_path / "one"), "the second window lost the first"
        assert self._has_data(second, tmp_path / "two"), (
            "the second window recorded nothing; clean up in stop"
        )

    def test_a_failed_start_leaves_nothing_behind(self, driven: Driven, tmp_path: Path) -> None:
        """After a failed `start`, `stop` raises nothing and the next window records."""
        (tmp_path / "file").touch()
        nowhere = tmp_path / "file" / "raw"  # no one can write here, not even root
        failed = driven.prepare(SECOND)
        try:
            driven.start(failed, nowhere)
            has_failed = False
        except Exception:
            has_failed = True

        try:
            driven.stop(failed, nowhere)
        except Exception as exc:
            assert not has_failed, (
                f"stop raised {exc!r} after a failed start; core calls stop then too, so it must "
                "be safe"
            )

        recorded = self.record(driven)
        assert self._has_data(recorded, tmp_path / "out"), (
            "the window after a failed start recorded nothing; if `start` fails, undo all that it "
            "did, and let `stop` forget the window first"
        )

    def test_a_second_start_is_refused_or_harmless(self, driven: Driven, tmp_path: Path) -> None:
        """`start` while a window is open raises CaptureError, or does not harm that window."""
        first, second = driven.prepare(FIRST), driven.prepare(SECOND)
        driven.start(first)
        try:
            driven.start(second)
        except CaptureError as exc:
            assert str(exc), "the CaptureError has no message; say that a window is open"
        self.work_on(driven)
        driven.stop(first)

        assert self._has_data(first, tmp_path / "out"), (
            "a second start took the data of the first; refuse it: "
            'raise CaptureError("a window is open already")'
        )

    def test_ranges_may_have_any_name(self, driven: Driven, tmp_path: Path) -> None:
        """Phases may have any name, nest, stay open and run on any thread; the window exports."""
        recorded = driven.prepare(FIRST)
        recording = driven.start(recorded)
        push, pop = getattr(recording, "push", None), getattr(recording, "pop", None)
        for member in (push, pop):
            if member is None:
                driven.stop(recorded)
                pytest.skip("its Recording has no push and pop, so it does not show phases")

        def ranges() -> None:
            for number, name in enumerate(HOSTILE):
                push(name, {"step": 7, "occurrence": number})  # type: ignore[misc]
            for _ in HOSTILE:
                pop()  # type: ignore[misc]

        ranges()
        elsewhere(ranges)
        push("left open", {"step": 7, "occurrence": 0})  # type: ignore[misc]
        self.work_on(driven)
        recorded = driven.stop(recorded)

        self._look_at(self._export(recorded, tmp_path / "out"), recorded, tmp_path / "out")

    def test_minibatches_may_be_told(self, driven: Driven, tmp_path: Path) -> None:
        """A Recording with `minibatch` accepts many calls of it."""
        recorded = driven.prepare(FIRST)
        recording = driven.start(recorded)
        minibatch = getattr(recording, "minibatch", None)
        if minibatch is not None:
            for _ in range(3):
                self.work_on(driven)
                minibatch()
        self.work_on(driven)
        recorded = driven.stop(recorded)

        assert self._has_data(recorded, tmp_path / "out"), "mini-batches lost the window"
