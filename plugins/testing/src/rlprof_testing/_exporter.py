"""The kit for an exporter: real runs, including the runs that a crash leaves."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rlprof
from rlprof import plugins
from rlprof_testing._drive import python
from rlprof_testing._kit_tool import PhaseTool
from rlprof_testing._plugin import PluginTests
from rlprof_testing._runs import KINDS, make_files, make_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUNS = pytest.StashKey[dict[str, Path]]()
_OPTIONS = {"align": None}
"""Those of `rlprof export` without options."""
PARTS = ({"only": "spans"}, {"only": "kit"}, {"steps": 2}, {"only": "windows", "steps": 1})
"""Parts of a whole run that an exporter may be given."""

_COMMAND = """
import json, sys
import rlprof, rlprof_cli
from pkgutil import resolve_name
where, name, argv = json.loads(sys.argv[1])
rlprof.register("exporter", name, resolve_name(where))
sys.exit(rlprof_cli.main(argv))
"""


class ExporterTests(PluginTests):
    """Inherit this, name your class, and every law of an exporter is tested.

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
        """Record the runs once for all exporters; each test gets copies."""
        stash = request.session.stash
        if _RUNS not in stash:
            monkeypatch.setitem(plugins._registered, ("tool", "kit"), PhaseTool)
            stash[_RUNS] = make_runs(tmp_path_factory.mktemp("runs"))
        return {kind: _copied(run, tmp_path / "runs") for kind, run in stash[_RUNS].items()}

    def _export(self, run: Path, out: Path, part: rlprof.Selection | None = None) -> list[Path]:
        """Export as `rlprof export` does."""
        self.skip_where_it_cannot_run()
        out.mkdir(parents=True, exist_ok=True)
        hooks = plugins.hooks(self.plugin())
        read = rlprof.read(run).only(part or rlprof.Selection())
        return list(hooks.render(run=read, out=out, options=_OPTIONS) or [])

    @pytest.mark.parametrize("what", KINDS)
    def test_it_exports_any_run(self, runs: Mapping[str, Path], what: str, tmp_path: Path) -> None:
        """A run that is whole, crashed, empty or damaged raises nothing.

        The exporter leaves out all that it cannot read, and says so in its output.
        """
        written = self._export(runs[what], tmp_path / "out")

        assert written or what != "whole", "render wrote nothing for a whole run"
        _look_at(written, tmp_path / "out")

    @pytest.mark.parametrize("part", PARTS, ids=str)
    def test_it_exports_a_part_of_a_run(
        self, runs: Mapping[str, Path], part: Mapping[str, Any], tmp_path: Path
    ) -> None:
        """A run without traces, without spans, or without most of its steps raises nothing."""
        written = self._export(runs["whole"], tmp_path / "out", rlprof.Selection(**part))

        _look_at(written, tmp_path / "out")

    def test_it_reads_any_files_or_none(self, tmp_path: Path) -> None:
        """Whole, cut, empty and foreign files raise nothing in `render_files`, and stay unchanged.

        An exporter without that hook reads only runs.
        """
        self.skip_where_it_cannot_run()
        hooks = plugins.hooks(self.plugin())
        if "render_files" not in hooks:
            pytest.skip("has no hook render_files: it reads only runs")
        files, out = make_files(tmp_path / "files"), tmp_path / "out"
        out.mkdir()
        before = _digests(tmp_path / "files")

        written = list(hooks.render_files(files=files, out=out, options=_OPTIONS) or [])

        _look_at(written, out)
        assert _digests(tmp_path / "files") == before, (
            "render_files changes the files it reads; write only into `out`"
        )

    @pytest.mark.parametrize("what", ["whole", "crashed", "damaged"])
    def test_it_leaves_the_run_as_it_is(
        self, runs: Mapping[str, Path], what: str, tmp_path: Path
    ) -> None:
        """An export changes, adds or removes no byte of the run folder."""
        before = _digests(runs[what])

        self._export(runs[what], tmp_path / "out")

        after = _digests(runs[what])
        changed = [str(file) for file in before | after if before.get(file) != after.get(file)]
        assert changed == [], "render changes the run; write only into `out`"

    def test_all_it_writes_is_returned(self, runs: Mapping[str, Path], tmp_path: Path) -> None:
        """It returns each file that it leaves in the folder, and removes temporary files."""
        written = self._export(runs["whole"], tmp_path / "out")

        there = {file for file in (tmp_path / "out").rglob("*") if file.is_file()}
        assert there == {Path(file) for file in written}, (
            "return every file written, so that `rlprof export` can name it"
        )

    def test_a_second_export_gives_the_same_names(
        self, runs: Mapping[str, Path], tmp_path: Path
    ) -> None:
        """A second export into the same folder writes the same files."""
        first = self._export(runs["whole"], tmp_path / "out")
        second = self._export(runs["whole"], tmp_path / "out")

        assert sorted(first) == sorted(second), "give files the same names in every export"

    def test_two_runs_do_not_mix(self, runs: Mapping[str, Path], tmp_path: Path) -> None:
        """An instance carries no data from one run into the export of the next."""
        self.skip_where_it_cannot_run()
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        hooks = plugins.hooks(self.plugin())
        hooks.render(run=rlprof.read(runs["hostile"]), out=tmp_path / "a", options=_OPTIONS)
        whole = rlprof.read(runs["whole"])
        written = hooks.render(run=whole, out=tmp_path / "b", options=_OPTIONS) or []

        fresh = self._export(runs["whole"], tmp_path / "c")
        other = rlprof.read(runs["hostile"]).run_id.encode()
        assert [file.name for file in written] == [file.name for file in fresh]
        assert not any(other in _content(file) for file in written), (
            "its files of this run hold data of the run before; keep nothing between runs"
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


def _look_at(written: list[Path], out: Path) -> None:
    """Check that the returned files exist, in the right folder."""
    for file in written:
        assert isinstance(file, Path), f"render returned {file!r}; return the Paths written"
        assert file.is_file(), f"{file}: render returned it but did not write it"
        assert file.resolve().is_relative_to(out.resolve()), (
            f"{file} is outside of `out`; write only into `out`"
        )


def _copied(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to / run.parent.name / run.name))


def _digests(folder: Path) -> dict[Path, str]:
    """Return the digest of each file in *folder*."""
    return {
        file.relative_to(folder): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


def _content(file: Path) -> bytes:
    """Read *file*, decompressed if it is gzipped."""
    data = file.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
