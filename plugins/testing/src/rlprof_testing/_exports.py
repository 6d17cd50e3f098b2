"""The laws of `export` for tools and engines: in another process, later, and after a crash."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pytest

from rlprof.errors import CaptureError
from rlprof.types import Artifact
from rlprof_testing._drive import FIRST, export_elsewhere, export_here
from rlprof_testing._options import OptionTests
from rlprof_testing._trace import check_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof.types import Window
    from rlprof_testing._drive import Driven, Recorded

CUTS = (0.0, 0.1, 0.5, 0.9)
"""The fraction of each raw file that a crash during writing leaves."""


class ExportTests(OptionTests):
    """Laws of exports."""

    produces: ClassVar[Literal["trace", "files"]] = "trace"
    """The artifacts of a window: at least one trace, or only files."""
    _kept: ClassVar[Recorded]

    @pytest.fixture(name="driven")
    def _driven(self, called: str, tmp_path: Path) -> Iterator[Driven]:
        """Make one instance and configure it inside the process."""
        raise NotImplementedError

    @pytest.fixture(name="recorded")
    def _recorded(
        self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Recorded:
        """Return a copy of a window of work, which is recorded once for all laws of the class."""
        own = type(self)
        if "_kept" not in vars(own):
            kept = self.record(request.getfixturevalue("driven"))
            own._kept = kept.copy(tmp_path_factory.mktemp("kept"))
        return own._kept.copy(tmp_path_factory.mktemp("recorded"))

    def work_on(self, driven: Driven) -> Any:
        """Let the target of *driven* do your `work`."""
        raise NotImplementedError

    def record(self, driven: Driven, window: Window = FIRST) -> Recorded:
        """Record one window of work, and return its folder."""
        recorded = driven.prepare(window)
        driven.start(recorded)
        self.work_on(driven)
        return driven.stop(recorded)

    def test_export_runs_elsewhere_and_later(self, driven: Driven, tmp_path: Path) -> None:
        """A new instance in another process can export after the folder was moved.

        It has only the folder: no state of `configure`, `start` or `stop`, and no old path. An
        engine is gone by then.
        """
        recorded = self.record(driven)
        driven.end()
        moved = recorded.copy(tmp_path / "elsewhere")
        shutil.rmtree(recorded.folder)

        exported = export_elsewhere(moved, tmp_path / "out")

        assert exported.error == "", (
            "export must work from the moved folder alone, in another process; by the end of stop, "
            "leave all that it needs in the folder, under relative names"
        )
        self._look_at(exported.artifacts, recorded, tmp_path / "out")
        assert exported.artifacts, "export returned nothing for a window in which work() ran"
        for artifact in exported.artifacts:
            assert artifact.status == "whole", (
                f"{artifact.path} is {artifact.status} ({artifact.note}), but nothing went wrong"
            )

    def test_what_it_produces_is_as_declared(self, recorded: Recorded, tmp_path: Path) -> None:
        """A plugin with `produces = "trace"` makes a trace; with `"files"`, it makes none."""
        found = self._export(recorded, tmp_path / "out")

        kinds = {artifact.kind for artifact in found}
        assert (self.produces == "trace") == ("trace" in kinds), (
            f"export made {sorted(kinds)}, but you declared produces = {self.produces!r} next to "
            '`plugin`; say produces = "files" if it makes no trace, or set kind="trace"'
        )

    def test_exporting_again_gives_the_same(self, recorded: Recorded, tmp_path: Path) -> None:
        """A second export of the same raw data into the same folder returns the same files.

        The helper process may die after it has written files and before it reports them to core.
        """
        out = tmp_path / "out"

        first = self._export(recorded, out)
        try:
            second = self._export(recorded, out)
        except Exception as exc:
            message = f"the second export raised {exc!r}; copy raw data: core deletes them"
            raise AssertionError(message) from exc

        assert [(a.path, a.kind, a.status) for a in first] == [
            (a.path, a.kind, a.status) for a in second
        ], "leave the raw data in place: core deletes them when all artifacts are whole"
        self._look_at(second, recorded, out)

    @pytest.mark.parametrize("left", CUTS)
    def test_raw_data_that_were_cut_are_never_called_whole(
        self, recorded: Recorded, tmp_path: Path, left: float
    ) -> None:
        """Raw data cut by a crash give partial artifacts, or one clear CaptureError."""
        for file in [file for file in recorded.raw.rglob("*") if file.is_file()]:
            with file.open("r+b") as stream:
                stream.truncate(int(file.stat().st_size * left))

        self._is_honest(recorded, tmp_path / "out", f"cut to {left:.0%}", may_be_empty=not left)

    def test_no_raw_data_are_never_called_whole(self, recorded: Recorded, tmp_path: Path) -> None:
        """An empty folder gives no artifacts, or one clear CaptureError."""
        shutil.rmtree(recorded.raw)
        recorded.raw.mkdir()

        self._is_honest(recorded, tmp_path / "out", "removed", may_be_empty=True)

    def test_a_window_never_closed_is_never_called_whole(
        self, driven: Driven, tmp_path: Path
    ) -> None:
        """If its process was killed, a window gives partial artifacts, none, or a CaptureError."""
        recorded = driven.prepare(FIRST)
        driven.start(recorded)
        self.work_on(driven)
        killed = recorded.copy(tmp_path / "killed")
        driven.stop(recorded)

        self._is_honest(killed, tmp_path / "out", "those of a killed process", may_be_empty=True)

    def _export(self, recorded: Recorded, out: Path) -> list[Artifact]:
        return list(export_here(self.plugin, recorded, out))

    def _is_honest(self, recorded: Recorded, out: Path, what: str, *, may_be_empty: bool) -> None:
        try:
            found = self._export(recorded, out)
        except CaptureError as exc:
            assert str(exc).strip(), "the CaptureError has no message; say what is missing"
            return
        except Exception as exc:
            message = (
                f"raw data were {what}, and export raised {exc!r}; return all it can save as "
                'Artifact(..., status="partial", note="why"), or raise CaptureError with a sentence'
            )
            raise AssertionError(message) from exc
        assert found or may_be_empty, (
            f"raw data were {what}, and export returned nothing, so the capture would look empty; "
            "return partial artifacts or raise CaptureError"
        )
        self._look_at(found, recorded, out, is_timed=False)
        if found:
            said = [artifact for artifact in found if artifact.status == "partial"]
            assert said, (
                f"raw data were {what}, but every artifact is whole; write an end mark in stop, "
                'and if export does not find it, say status="partial"'
            )
            assert any(artifact.note for artifact in said), "say in `note` why it is partial"

    def _look_at(
        self,
        artifacts: Sequence[Artifact],
        recorded: Recorded,
        out: Path,
        *,
        is_timed: bool = True,
    ) -> None:
        """Check the names and contents of *artifacts* against the contract."""
        stem = recorded.capture.stem
        if not is_timed:
            recorded = recorded.untimed()
        seen = set()
        for artifact in artifacts:
            assert isinstance(artifact, Artifact), (
                f"export returned {artifact!r}, which is not an Artifact"
            )
            path = Path(artifact.path)
            assert not path.is_absolute(), (
                f"{path}: the path of an artifact must be relative to `out`"
            )
            file = (out / path).resolve()
            assert file.is_relative_to(out.resolve()), f"{path}: an artifact must be inside `out`"
            assert path.parts[0].startswith(stem), (
                f"{path} does not begin with capture.stem ({stem}), and files of many ranks and "
                'windows share a folder; name it f"{capture.stem}.suffix"'
            )
            assert file.is_file(), f"{path}: export returned it but did not write it into `out`"
            assert path not in seen, f"{path}: export returned it twice"
            seen.add(path)
            assert artifact.kind in ("trace", "files"), f"{path}: kind is {artifact.kind!r}"
            assert artifact.status in ("whole", "partial"), f"{path}: status {artifact.status!r}"
            assert file.stat().st_size or artifact.status == "partial", (
                f"{path}: it is empty, but its status is whole"
            )
            if artifact.kind == "trace":
                assert artifact.format == "chrome-trace", (
                    f"{path}: the format of a trace must be chrome-trace"
                )
                trace = check_trace(file, recorded)
                count = len(trace["traceEvents"])
                assert count or artifact.status == "partial", (
                    f"{path}: it has no event, but its status is whole"
                )
                assert artifact.events in (None, count), (
                    f"{path}: says events={artifact.events}, but traceEvents has {count}"
                )
