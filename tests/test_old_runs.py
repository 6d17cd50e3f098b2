"""Run folders written by rlprof 0.1.0 (commit 2dbe11c) still work: tests/data/written_by_0_1.

One run ended, with the tools torch and stacks; the other was killed inside its second window.
"""

import os
import shutil
import socket
from pathlib import Path

import pytest

import rlprof
from rlprof.rundir._process import Here
from rlprof_cli import main
from tests.core.distributions import install

ROOT = Path(__file__).parent.parent
WRITTEN = Path(__file__).parent / "data/written_by_0_1"


@pytest.fixture(name="home")
def _home(tmp_path):
    """Copy the runs and the scratch of the killed one, changed to be of this host."""
    home = tmp_path / "home"
    shutil.copytree(WRITTEN, home)
    here = Here.now()
    meant = {
        "@HOME@": str(home), "@UID@": str(os.getuid()), "@HOST@": socket.gethostname(),
        "@BOOT@": here.boot_id, "@NAMESPACE@": here.pid_namespace,
    }  # fmt: skip
    for path in home.rglob("*.json*"):
        if path.suffix != ".gz":
            text = path.read_text()
            for mark, word in meant.items():
                text = text.replace(mark, word)
            path.write_text(text)
    (home / "scratch/rlprof-UID").rename(home / f"scratch/rlprof-{os.getuid()}")
    for path in (home / "scratch").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return home


def test_an_old_run_is_read_and_selected(home):
    """An old run is read with its captures, spans and states, and can be selected from."""
    run = rlprof.read(home / "runs/ended")

    assert [(c.window.id, c.tool, c.state) for c in run.captures] == [
        ("1/update_actor", "torch", "whole"), ("1/update_actor", "stacks", "whole"),
        ("2/update_actor", "torch", "whole"), ("2/update_actor", "stacks", "whole"),
    ]  # fmt: skip
    assert (run.problems, run.missing, run.skipped) == ((), (), ())
    assert [span.name for span in run.spans() if span.kind == "step"] == [
        "step 1", "step 2", "step 3"
    ]  # fmt: skip
    part = run.only(rlprof.Selection(steps=2))
    assert {c.window.start_step for c in part.captures} == {2}


def test_an_old_run_is_exported_and_explained(home, capsys):
    """Timeline, report, `ls` and `why` accept an old run."""
    run = str(home / "runs/ended")

    codes = [main(words) for words in (
        ["export", run, "--to", "timeline,report"], ["ls", run], ["why", run],
    )]  # fmt: skip

    assert codes == [0, 0, 0]
    assert {path.name for path in Path(run, "exports").iterdir()} >= {
        "timeline.json.gz", "report.html", "report.json",
    }  # fmt: skip
    assert "Too few steps" in capsys.readouterr().out


@pytest.mark.slow
def test_the_open_window_of_an_old_killed_run_is_salvaged(home, monkeypatch, tmp_path):
    """Salvage exports the open window of an old killed run as partial."""
    site = tmp_path / "site"
    site.mkdir()
    install(monkeypatch, site, "rlprof-old", "", "[rlprof.tools]\nstacks = rlprof_stacks:Stacks\n")
    monkeypatch.syspath_prepend(str(ROOT / "examples/third_party_tool/src"))
    before = [c.state for c in rlprof.read(home / "runs/killed").captures]

    code = main(["salvage", str(home / "runs/killed")])

    run = rlprof.read(home / "runs/killed")
    assert (before, code) == (["whole", "lost"], 0)
    assert [c.state for c in run.captures] == ["whole", "partial"]
    assert (run.path / run.captures[1].artifacts[0].path).stat().st_size > 0
