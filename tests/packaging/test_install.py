"""The checkout installs as the README describes, with pip and uv, into new environments."""

import os
import subprocess
import sys

import pytest

from tests.packaging.conftest import copied, third_party

pytestmark = pytest.mark.slow

ASKED = "[torch,sglang]"


@pytest.fixture(scope="module", name="checkout")
def _checkout(tmp_path_factory):
    """Copy the files that git would clone, because installing changes the folder."""
    return copied(tmp_path_factory.mktemp("checkout"))


def run(*argv):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(list(map(str, argv)), env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def with_pip(python, site, what):
    """Install *what* with pip, without an index, next to third-party packages."""
    (site / "third_party.pth").write_text(third_party())
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", what)


def with_uv(python, site, what):
    """Install *what* and its requirements from the index, with isolated builds."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--system-certs"]
    run(*uv, "--python", python, what)


@pytest.mark.parametrize("installed", [with_pip, with_uv])
def test_the_checkout_installs_with_the_plugins_asked_for(installed, checkout, tmp_path):
    """`.[torch,sglang]` installs core, commands, report and these plugins, but not torch itself."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env/bin/python"
    (site,) = tmp_path.glob("env/lib/python*/site-packages")

    installed(python, site, f"{checkout}{ASKED}")

    lines = run(python.with_name("rlprof"), "plugins").splitlines()
    kinds = ("tool", "engine", "exporter")
    assert [line.split()[1] for line in lines if line.startswith(kinds)] == [
        "torch", "torch_memory", "sglang", "parquet", "report"
    ]  # fmt: skip
    names = {path.name.partition("-")[0] for path in site.glob("*.dist-info")}
    assert {"rlprof", "rlprof_core", "rlprof_cli"} <= names
    assert not {"torch", "sglang"} & names
    asked = "from rlprof.distributions import how_to_install as how; print(how('rlprof-nsys'))"
    assert run(python, "-c", asked) == f"pip install '{checkout}[nsys]'\n"
