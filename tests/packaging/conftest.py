"""Every distribution of the checkout, built once, and environments with some of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parent.parent.parent
DESK = ("rlprof-core", "rlprof-run", "rlprof-live", "rlprof-cli")
"""The distributions that list, check and export, without any plugin."""


@attrs.frozen
class Built:
    """A distribution: the sdist built from its folder, and the wheel from the sdist."""

    name: str
    folder: Path
    sdist: Path
    wheel: Path

    @property
    def package(self) -> str:
        """The name of its package."""
        return next(path.name for path in (self.folder / "src").iterdir())


@attrs.frozen
class Environment:
    """A Python with third-party packages, and with ours from its own folder."""

    path: Path
    python: str

    @property
    def site(self) -> Path:
        """The folder of our packages, as pip installs them."""
        return self.path / "site"

    def run(self, *argv: str, code: int = 0, **env: str) -> str:
        """Run its `python ARGV` outside the checkout; return everything it printed."""
        keep = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        result = subprocess.run(
            [self.python, *argv], cwd=self.path, env=keep | {"PYTHONPATH": str(self.site)} | env,
            capture_output=True, text=True,
        )  # fmt: skip
        said = result.stdout + result.stderr
        assert code == result.returncode, said
        return said

    def rlprof(self, *argv: str, code: int = 0) -> str:
        """Run the command `rlprof`."""
        return self.run("-m", "rlprof", *argv, code=code)


def third_party() -> str:
    """Return the folder of third-party packages; `envs/make_env.sh` keeps ours out of it."""
    pth = Path(sysconfig.get_path("purelib")) / "rlprof_base.pth"
    assert pth.exists(), f"{sys.executable} was not made by envs/make_env.sh; use .envs/test"
    return pth.read_text().strip()


@pytest.fixture(scope="session", name="source")
def _source(tmp_path_factory):
    """Copy the files that git would clone, so that builds leave nothing in the checkout."""
    return copied(tmp_path_factory.mktemp("source"))


def copied(copy: Path) -> Path:
    """Copy the files that git would clone into the folder *copy* and return it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


BUILD = """
import json, os, pathlib, sys, tarfile
from hatchling import build
folders, out = json.loads(sys.argv[1]), pathlib.Path(sys.argv[2])
for folder in folders:
    os.chdir(folder)
    sdist = build.build_sdist(str(out))
    tarfile.open(out / sdist).extractall(out / "unpacked")
    os.chdir(out / "unpacked" / sdist.removesuffix(".tar.gz"))
    print(json.dumps([folder, sdist, build.build_wheel(str(out))]))
"""


def build(out: Path, *folders: Path, **env: str) -> list[Built]:
    """Build the distributions in *folders*, all in one process."""
    argv = [sys.executable, "-c", BUILD, json.dumps([str(folder) for folder in folders]), str(out)]
    done = subprocess.run(argv, env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return [
        Built(wheel.partition("-")[0].replace("_", "-"), Path(folder), out / sdist, out / wheel)
        for folder, sdist, wheel in made
    ]


@pytest.fixture(scope="session", name="built")
def _built(source, tmp_path_factory) -> dict[str, Built]:
    """Build every distribution; return them by name."""
    folders = [source / "core", *sorted((source / "plugins").iterdir())]
    return {one.name: one for one in build(tmp_path_factory.mktemp("dist"), *folders)}


@pytest.fixture(scope="session", name="product")
def _product(source, tmp_path_factory) -> Built:
    """Build `rlprof` as for a release."""
    (made,) = build(tmp_path_factory.mktemp("dist"), source, RLPROF_RELEASE="1")
    return made


@pytest.fixture(scope="session", name="environment")
def _environment(tmp_path_factory):
    """Return a function that makes an environment with the wheels given."""
    base = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    (packages,) = base.glob("lib/python*/site-packages")
    (packages / "third_party.pth").write_text(third_party())

    def make(*wheels: Path) -> Environment:
        made = Environment(tmp_path_factory.mktemp("env"), str(base / "bin/python"))
        for wheel in wheels:
            zipfile.ZipFile(wheel).extractall(made.site)
        return made

    return make
