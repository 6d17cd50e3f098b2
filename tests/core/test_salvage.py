"""`rlprof salvage` exports what killed processes left and reports what is missing."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import attrs
import pytest

import rlprof
from rlprof.rundir import Here
from rlprof.session import _exports
from rlprof_cli import main
from tests.cases import cases
from tests.core.steps import command, record
from tests.fakes import tools

pytestmark = pytest.mark.slow

OPENED = "prof = rlprof.open(config)"
CLOSED = """
prof.scribe.exported = lambda: []  # exporting takes its time
for step in prof.steps(range(2)):
    with prof.phase("rollout"):
        pass
prof.step(2)
prof.phase("rollout").__enter__()
prof.scribe.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(name="killed")
def _killed(tmp_path):
    """Return a function that runs a script until it is killed and returns its run folder."""

    def run(script=OPENED + CLOSED):
        runs = tmp_path / "killed"
        done = subprocess.run(**command(script, runs, tmp_path / "scratch"))
        assert done.returncode == -signal.SIGKILL
        (path,) = runs.iterdir()
        return path

    return run


def states(path):
    return [capture.state for capture in rlprof.read(path).captures]


def test_salvage_exports_the_windows_of_a_killed_process(killed, tmp_path, shell):
    """Salvage makes closed windows whole and the open one partial, and empties scratch."""
    path = killed()
    before = states(path)

    code, out, _ = shell("salvage", path)

    run = rlprof.read(path)
    assert (before, code) == (["lost"] * 3, 0)
    assert states(path) == ["whole", "whole", "partial"]
    assert run.captures[0].notes == ("salvaged: its process ended before it was exported",)
    assert run.captures[2].notes == (
        "salvaged: the window was never closed, so its end is missing",
    )
    assert "3/3 2/rollout actor 0/1 fake: salvaged, partial: its end is missing" in out
    assert run.problems == ()
    assert [f for f in (tmp_path / "scratch").rglob("*") if f.is_file()] == []
    for capture in run.captures:
        assert (path / capture.artifacts[0].path).exists()
    code, out, _ = shell("salvage", path)
    assert code == 0
    assert out.startswith("nothing to salvage")
    assert len(list(path.glob("manifest/+salvage-*"))) == 1


# failures.md: salvage-busy
def test_salvage_keeps_files_that_are_exported_already(killed, shell):
    """Salvage keeps the files of a finished export and only writes the manifest."""
    path = killed()
    made = []
    for capture in rlprof.read(path).captures[::2]:  # one was closed, one was not
        out = path / capture.window.folder / capture.target.folder / capture.tool
        _exports.export(Path(capture.scratch), out, path)
        made += [(file, file.stat().st_mtime_ns) for file in out.iterdir()]

    shell("salvage", path)

    assert states(path) == ["whole", "whole", "partial"]
    assert [(file, file.stat().st_mtime_ns) for file, _ in made] == made


# failures.md: salvage-busy, salvage-tried
def test_salvage_skips_locked_and_missing_raw_data(killed, shell):
    """Salvage reports and skips locked or missing raw data; a second one gets the unlocked."""
    path = killed()
    busy, gone, _ = (Path(capture.scratch) for capture in rlprof.read(path).captures)
    shutil.rmtree(gone)
    with (busy / "capture.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        code, out, err = shell("salvage", path)

    first = states(path)
    again, *_ = shell("salvage", path)
    assert (code, first) == (1, ["lost", "lost", "partial"])
    assert "1/3 0/rollout actor 0/1 fake: another salvage is running" in out
    assert "2/3 1/rollout actor 0/1 fake: nothing is left in" in out
    assert "2 of 3 could not be salvaged here" in err
    assert (again, states(path)) == (1, ["whole", "lost", "partial"])


# failures.md: salvage-tried
def test_salvage_names_the_host_of_the_raw_data(killed, shell):
    """Salvage names the host on which the raw data lie."""
    path = killed()
    there = attrs.evolve(Here.now(), host="node17")
    edit(path, here=attrs.asdict(there), scratch="/nowhere/at/all", realtime_ns=1)
    os.utime(*path.glob("manifest/*"), (0, 0))

    code, out, _ = shell("salvage", path)

    assert (code, out.count("its raw data is on node17; run this there")) == (1, 3)


# failures.md: salvage-tried
def test_salvage_tries_a_failed_export_again(kept, monkeypatch, shell):
    """Salvage exports raw data of a failed export again and notes both."""
    path, scratch = kept
    failed = states(path)
    data = json.loads((scratch / "capture.json").read_bytes())
    (scratch / "capture.json").write_text(json.dumps(data | {"options": {}}))
    monkeypatch.setattr(tools.Fake, "options", tools.FakeOptions())

    code, _, err = shell("salvage", path)

    assert (failed, code) == (["failed"], 0), err
    (made,) = rlprof.read(path).captures
    assert made.state == "whole"
    assert made.notes == (
        "export: CaptureError: export says no",
        "salvaged: exported again, because the first export failed",
    )
    assert not Path(made.scratch).parents[1].exists()


# failures.md: salvage-tried
def test_salvage_names_a_plugin_that_is_not_installed(killed, shell):
    """Salvage names a plugin that is not installed and keeps the raw data."""
    path = killed()
    plugin = "rlprof_gone:Gone"
    says = "fake needs the module rlprof_gone, which is not installed here"
    for file in [Path(c.scratch) / "capture.json" for c in rlprof.read(path).captures]:
        file.write_text(json.dumps(json.loads(file.read_bytes()) | {"plugin": plugin}))

    code, said, _ = shell("salvage", path)
    out = said + shell("ls", path)[1]

    assert code == 1
    assert f"PluginError: {says}" in out
    assert "; install what brings it; raw data are kept in" in out
    assert "ModuleNotFoundError" not in out
    assert "there: rlprof salvage" not in out
    assert states(path) == ["failed", "failed", "lost"]
    assert all((Path(c.scratch) / "raw").exists() for c in rlprof.read(path).captures)


@pytest.fixture(name="kept")
def _kept(config):
    """Record a window whose export fails and keeps its raw data; return run and folder."""
    prof = record(config(options={"raises_in": "export"}), [0])
    (capture,) = rlprof.read(prof.run_dir).captures
    return prof.run_dir, Path(capture.scratch)


def edit(path, **changes):
    """Change fields of the manifest in every line that has them."""
    (manifest,) = path.glob("manifest/*")
    lines = [
        line | {name: value for name, value in changes.items() if name in line}
        for line in map(json.loads, manifest.read_bytes().splitlines())
    ]
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))


def salvaged(path, capsys):
    """Salvage *path*; return the message about its one window."""
    capsys.readouterr()
    code = main(["salvage", str(path)])
    assert code == 1
    return capsys.readouterr().out.splitlines()[0].partition(": ")[2]


def everything(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# failures.md: left-alone
def test_salvage_touches_no_folder_that_core_did_not_make(kept, tmp_path, capsys):
    """Salvage imports and deletes nothing in a folder open to others or outside of scratch."""
    path, scratch = kept
    other, home = tmp_path / "elsewhere", tmp_path / "scratch" / f"rlprof-{os.getuid()}"
    shutil.copytree(scratch, other)
    (other / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    noted = json.loads((other / "capture.json").read_bytes())
    (other / "capture.json").write_text(json.dumps(noted | {"plugin": "evil:Evil", "options": {}}))
    before = everything(other)

    home.chmod(0o777)
    open_to_all = salvaged(path, capsys)
    home.chmod(0o700)
    edit(path, scratch=str(other))
    said = salvaged(path, capsys)

    assert open_to_all.startswith(f"others may write to {home}, ")
    assert said == f"{other} is not the folder for raw data of this window; left alone"
    assert everything(other) == before
    assert not (tmp_path / "ran").exists()


# failures.md: left-alone, salvage-tried
@cases(
    "spoilt, told",
    (lambda text: "", ""),
    (lambda text: json.dumps(json.loads(text) | {"plugin": "os:abort"}),
     "PluginError: os:abort is no plugin: it marks no method with hookimpl"),
    (lambda text: json.dumps(json.loads(text) | {"plugin": "__main__:Mine"}),
     "PluginError: Mine is a class of the script that ran, which no other process can import"),
)  # fmt: skip
def test_salvage_refuses_a_note_without_a_valid_plugin(kept, capsys, spoilt, told):
    """Salvage keeps raw data whose note is empty or names no importable plugin."""
    path, scratch = kept
    file = scratch / "capture.json"
    file.write_text(spoilt(file.read_text()))

    said = salvaged(path, capsys)

    assert said.startswith(told)
    assert said.endswith(f"; raw data are kept in {scratch}")
