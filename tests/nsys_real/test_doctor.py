"""`rlprof doctor` proves the installed nsys with one dry window, and says what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
DEBIAN = "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64"


def examined(nsys, tmp_path):
    """Return the exit code and what is said of the tool."""
    config = {
        "tool": "nsys", "steps": [1], "roles": {"actor": {}}, "run_dir": str(tmp_path / "runs"),
        "tools": {"nsys": {"nsys": str(nsys), "trace": ["nvtx"]}},
    }  # fmt: skip
    file = tmp_path / "profile.yaml"
    file.write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "rlprof", "doctor", str(file)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, [line for line in done.stdout.splitlines() if "tool nsys" in line]


def parted(nsys, home):
    """Lay the program out below *home* as Debian does, without its importer."""
    real = Path(nsys).resolve().parent
    there = home / DEBIAN
    there.mkdir(parents=True)
    for file in real.iterdir():
        if file.name == "nsys":  # it looks for its importer beside where it really is
            shutil.copy(file, there)
        else:
            (there / file.name).symlink_to(file)
    return there / "nsys"


# failures.md: nsys-unusable
def test_one_without_its_importer_is_told_with_the_cure(nsys, tmp_path):
    """As Debian's is, whose importer is not installed: a window is raw data alone."""
    _, said = examined(parted(nsys, tmp_path / "debian"), tmp_path)

    assert said[0].startswith("warn  tool nsys of actor: recorded 0 events, 1 file")
    assert "nsys has no importer, so it left raw data (.qdstrm)" in said[0]
    assert "link its folder host-linux-x64 next to target-linux-x64" in said[0]


# failures.md: nsys-unusable
def test_debians_is_ok_though_it_does_not_find_its_importer(nsys, tmp_path):
    """The importer lies elsewhere there: the tool calls it where nsys does not."""
    program = parted(nsys, tmp_path / "debian")
    home = Path(nsys).resolve().parents[4] / "lib/nsight-systems"
    (tmp_path / "debian/usr/lib/nsight-systems").symlink_to(home)

    code, said = examined(program, tmp_path)

    assert (code, len(said)) == (0, 1), said
    assert said[0].startswith("ok    tool nsys of actor: recorded ")
