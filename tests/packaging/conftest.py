"""Every distribution of the checkout built once, and environments that hold some of them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parent.parent.parent
DESK = ("rlprof-core", "rlprof-run", "rlprof-live", "rlprof-cli")
"""What lists, checks and exports; no plugin is among it."""


@attrs.frozen
class Built:
    """A distribution, built: the sdist from its folder, the wheel from the sdist."""

    name: str
    folder: Path
    sdist: Path
    wheel: Path

    @property
    def package(self) -> str:
        """The package it holds."""
        return next(path.name for path in (self.folder / "src").iterdir())


@attrs.frozen
class Environment:
    """A new environment that sees third-party packages, and of ours what was installed into it."""

    path: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.path / "bin/python")

    def run(self, *argv: str, code: int = 0, **env: str) -> str:
        """Run a command of it, away from the checkout; return all it printed."""
        keep = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        keep["PATH"] = f"{self.path / 'bin'}{os.pathsep}{keep['PATH']}"
        result = subprocess.run(
            argv, cwd=self.path, env=keep | env, capture_output=True, text=True
        )  # fmt: skip
        said = result.stdout + result.stderr
        assert code == result.returncode, said
        return said

    def install(self, *files: Path | str) -> str:
        """Install *files* and nothing they ask for; the network is not needed."""
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        return self.run(*pip, "--no-index", "--no-deps", "--no-build-isolation", *map(str, files))


def third_party() -> str:
    """Return where the packages of others are: `envs/make_env.sh` keeps ours out of there."""
    pth = Path(sysconfig.get_path("purelib")) / "rlprof_base.pth"
    assert pth.exists(), f"{sys.executable} was not made by envs/make_env.sh; use .envs/test"
    return pth.read_text().strip()


@pytest.fixture(scope="session", name="source")
def _source(tmp_path_factory):
    """Copy what git would clone, so that building leaves nothing in the checkout."""
    return copied(tmp_path_factory.mktemp("source"))


def copied(copy: Path) -> Path:
    """Copy into the folder *copy* what git would clone, and return it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


@pytest.fixture(scope="session", name="built")
def _built(source, tmp_path_factory) -> dict[str, Built]:
    """Build every distribution, by name."""
    folders = [source / "core", *sorted((source / "plugins").iterdir())]
    made = [build(folder, tmp_path_factory.mktemp("dist")) for folder in folders]
    return {one.name: one for one in made}


@pytest.fixture(scope="session", name="product")
def _product(source, tmp_path_factory) -> Built:
    """Build `rlprof` as a release."""
    return build(source, tmp_path_factory.mktemp("dist"), RLPROF_RELEASE="1")


def build(folder: Path, out: Path, **env: str) -> Built:
    """Build the distribution in *folder*."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "-o", str(out), str(folder)],
        env=os.environ | env, capture_output=True, check=True,
    )  # fmt: skip
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return Built(wheel.name.partition("-")[0].replace("_", "-"), folder, sdist, wheel)


def new_environment(path: Path, *files: Path | str) -> Environment:
    """Make an environment of the files given."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    environment = Environment(path)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(environment.run(environment.python, "-c", where).strip())
    (site / "third_party.pth").write_text(third_party())
    if files:
        environment.install(*files)
    return environment


@pytest.fixture(name="environment")
def _environment(tmp_path):
    """Return a function that makes an environment of the files given."""
    return partial(new_environment, tmp_path / "env")
