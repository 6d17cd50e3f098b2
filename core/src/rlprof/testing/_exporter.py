"""The kit for an exporter: real runs, also such as a crash leaves."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rlprof
from rlprof import plugins
from rlprof.testing._drive import python
from rlprof.testing._kit_tool import PhaseTool
from rlprof.testing._plugin import PluginTests
from rlprof.testing._runs import KINDS, make_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUNS = pytest.StashKey[dict[str, Path]]()
_COMMAND = """
import json, sys
import rlprof, rlprof.cli
from rlprof.session.export_process import load_class
where, name, argv = json.loads(sys.argv[1])
rlprof.register("exporter", name, load_class(where))
sys.exit(rlprof.cli.main(argv))
"""


class ExporterTests(PluginTests):
    """Inherit it, name your class, and every law of an exporter is tested.

    class TestMine(ExporterTests):
        plugin = Mine
    """

    kind = "exporter"

    @pytest.fixture(name="runs")
    def _runs(
        self,
        request: pytest.FixtureRequest,
        tmp_path_factory: pytest.TempPathFactory,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> dict[str, Path]:
        """Record the runs, once for all exporters; each test has a copy."""
        stash = request.session.stash
        if _RUNS not in stash:
            monkeypatch.setitem(plugins._registered, ("tool", "kit"), PhaseTool)
            stash[_RUNS] = make_runs(tmp_path_factory.mktemp("runs"))
        return {kind: _copied(run, tmp_path / "runs") for kind, run in stash[_RUNS].items()}

    def _export(self, run: Path, out: Path) -> list[Path]:
        """Export as `rlprof export` does."""
        self.skip_where_it_cannot_run()
        out.mkdir(parents=True, exist_ok=True)
        hooks = plugins.hooks("exporter", self.plugin())
        return list(hooks.export(run=rlprof.read(run), out=out) or [])

    @pytest.mark.parametrize("what", KINDS)
    def test_it_exports_any_run(self, runs: Mapping[str, Path], what: str, tmp_path: Path) -> None:
        """A run that is whole, crashed, empty or damaged raises nothing.

        What cannot be read is left out and said so in what is written.
        """
        written = self._export(runs[what], tmp_path / "out")

        assert written or what != "whole", "export wrote nothing for a whole run"
        for file in written:
            assert isinstance(file, Path), f"export returned {file!r}; return the Paths written"
            assert file.is_file(), f"{file}: export returned it and has not written it"
            assert file.resolve().is_relative_to((tmp_path / "out").resolve()), (
                f"{file} lies outside of `out`; write there and nowhere else"
            )

    @pytest.mark.parametrize("what", ["whole", "crashed", "damaged"])
    def test_it_leaves_the_run_as_it_is(
        self, runs: Mapping[str, Path], what: str, tmp_path: Path
    ) -> None:
        """Not a byte of the run folder is changed, added or removed."""
        before = _digests(runs[what])

        self._export(runs[what], tmp_path / "out")

        after = _digests(runs[what])
        changed = [str(file) for file in before | after if before.get(file) != after.get(file)]
        assert changed == [], "export changes the run; write into `out` and nowhere else"

    def test_all_it_writes_is_returned(self, runs: Mapping[str, Path], tmp_path: Path) -> None:
        """Each file it writes into the folder is among those it returns; drafts are removed."""
        written = self._export(runs["whole"], tmp_path / "out")

        there = {file for file in (tmp_path / "out").rglob("*") if file.is_file()}
        assert there == {Path(file) for file in written}, (
            "return every file written, so that `rlprof export` can name it"
        )

    def test_a_second_export_gives_the_same_names(
        self, runs: Mapping[str, Path], tmp_path: Path
    ) -> None:
        """Exporting again, over what is there, writes the same files."""
        first = self._export(runs["whole"], tmp_path / "out")
        second = self._export(runs["whole"], tmp_path / "out")

        assert sorted(first) == sorted(second), "give files names that do not change"

    def test_two_runs_do_not_mix(self, runs: Mapping[str, Path], tmp_path: Path) -> None:
        """What one instance kept of a run is not in the export of the next."""
        self.skip_where_it_cannot_run()
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        hooks = plugins.hooks("exporter", self.plugin())
        hooks.export(run=rlprof.read(runs["hostile"]), out=tmp_path / "a")
        written = hooks.export(run=rlprof.read(runs["whole"]), out=tmp_path / "b") or []

        fresh = self._export(runs["whole"], tmp_path / "c")
        other = rlprof.read(runs["hostile"]).run_id.encode()
        assert [file.name for file in written] == [file.name for file in fresh]
        assert not any(other in _content(file) for file in written), (
            "the run exported before is in the export of this one; keep nothing between exports"
        )

    def test_the_command_line_runs_it(
        self, called: str, runs: Mapping[str, Path], tmp_path: Path
    ) -> None:
        """`rlprof export RUN --to NAME` runs it and names what it wrote."""
        self.skip_where_it_cannot_run()
        where = f"{self.plugin.__module__}:{self.plugin.__qualname__}"
        argv = ["export", str(runs["whole"]), "--to", called, "--out", str(tmp_path / "out")]

        result = python(
            [sys.executable, "-c", _COMMAND, json.dumps([where, called, argv])], cwd=tmp_path
        )

        assert result.returncode == 0, result.stderr
        assert f"{called}: " in result.stdout


def _copied(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to / run.parent.name / run.name))


def _digests(folder: Path) -> dict[Path, str]:
    """Say what is in *folder*, by content."""
    return {
        file.relative_to(folder): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


def _content(file: Path) -> bytes:
    """Read *file*, unpacked if it is packed."""
    data = file.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
