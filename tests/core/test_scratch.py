"""What a manifest says of a scratch folder is believed only where core has made that folder."""

import json
import os
import shutil
from pathlib import Path

import pytest

import rlprof
from rlprof_cli import main
from tests.core.steps import record

pytestmark = pytest.mark.slow


@pytest.fixture(name="kept")
def _kept(config):
    """Record a window whose export fails, so that its raw data are kept; return run and folder."""
    prof = record(config(options={"raises_in": "export"}), [0])
    (capture,) = rlprof.read(prof.run_dir).captures
    return prof.run_dir, Path(capture.scratch)


def edit(path, **changes):
    """Change what its manifest says, in every line that says it."""
    (manifest,) = path.glob("manifest/*")
    lines = [
        line | {name: value for name, value in changes.items() if name in line}
        for line in map(json.loads, manifest.read_bytes().splitlines())
    ]
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))


def salvaged(path, capsys):
    """Salvage *path*; return what was said of its one window."""
    capsys.readouterr()
    code = main(["salvage", str(path)])
    assert code == 1
    return capsys.readouterr().out.splitlines()[0].partition(": ")[2]


def everything(folder):
    """Return all files below *folder* with what is in them."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# failures.md: left-alone
def test_a_folder_core_would_not_have_made_is_left_alone(kept, tmp_path, capsys):
    """A manifest that names another place imports nothing from there, and deletes nothing."""
    path, scratch = kept
    other = tmp_path / "elsewhere"
    shutil.copytree(scratch, other)
    (other / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    noted = json.loads((other / "capture.json").read_bytes())
    (other / "capture.json").write_text(json.dumps(noted | {"plugin": "evil:Evil", "options": {}}))
    before = everything(other)
    edit(path, scratch=str(other))

    said = salvaged(path, capsys)

    assert said == f"{other} is not the folder for raw data of this window; left alone"
    assert everything(other) == before
    assert not (tmp_path / "ran").exists()


# failures.md: left-alone
def test_a_folder_others_may_write_to_is_left_alone(kept, tmp_path, capsys):
    """What lies there says which code is run."""
    path, _ = kept
    home = tmp_path / "scratch" / f"rlprof-{os.getuid()}"
    home.chmod(0o777)

    said = salvaged(path, capsys)

    assert said.startswith(f"others may write to {home}, ")


# failures.md: left-alone, salvage-tried
@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        (lambda text: "", ""),
        (lambda text: json.dumps(json.loads(text) | {"plugin": "os:abort"}),
         "PluginError: os:abort is no plugin: it marks no method with hookimpl"),
        (lambda text: json.dumps(json.loads(text) | {"plugin": "__main__:Mine"}),
         "PluginError: Mine is a class of the script that ran, which no other process can import"),
    ],
    ids=["no note", "no plugin", "of the script"],
)  # fmt: skip
def test_a_note_that_names_no_plugin_is_told(kept, capsys, spoilt, told):
    """Nothing is exported without a note, nor by what is no plugin or cannot be imported."""
    path, scratch = kept
    file = scratch / "capture.json"
    file.write_text(spoilt(file.read_text()))

    said = salvaged(path, capsys)

    assert said.startswith(told)
    assert said.endswith(f"; raw data are kept in {scratch}")
