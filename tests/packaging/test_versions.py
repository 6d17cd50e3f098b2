"""All distributions have the version in core/pyproject.toml."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rlprof_cli.new import OURS
from tests.packaging.conftest import ROOT

CORE = ROOT / "core/pyproject.toml"
OTHERS = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]


@pytest.mark.parametrize("file", [CORE, *OTHERS], ids=lambda file: file.parent.name)
def test_a_distribution_has_the_version_of_core_and_requires_it(file):
    """A distribution takes its version from core and requires the same minor version of others."""
    (version,) = re.findall(r'^version = "(.+)"', CORE.read_text(), re.MULTILINE)
    major, minor = map(int, version.split(".")[:2])
    text = file.read_text()
    asked = re.findall(r'"rlprof-[\w-]+(?:\[\w+\])?([<>=][^"]*)"', text)

    wanted = f">={major}.{minor},<{major}.{minor + 1}"
    assert set(asked) <= {wanted}
    if file != CORE:
        assert f'"rlprof-core{wanted}"' in text
        (path,) = re.findall(r'^\[tool\.hatch\.version\].*\npath = "(.+)"', text, re.MULTILINE)
        assert (file.parent / path).resolve() == CORE
        dynamic = re.findall(r'^dynamic = \["version"', text, re.MULTILINE)
        assert dynamic == ['dynamic = ["version"']


def test_no_new_plugin_takes_the_name_of_a_distribution():
    """`rlprof new` knows the names of all our distributions."""
    texts = [file.read_text() for file in (CORE, *OTHERS)]
    names = {re.findall(r'^name = "(.+)"', text, re.MULTILINE)[0] for text in texts}

    assert names == {"rlprof", *(f"rlprof-{name}" for name in OURS)}


def test_the_hook_for_other_repositories_checks_every_config_it_is_given(tmp_path):
    """The pre-commit hook fails if one of several configs is invalid."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    good, bad = tmp_path / "profile.yaml", tmp_path / "profile_2.yaml"
    good.write_text("tool: none\nsteps: [1]\nroles: {actor: {}}\n")
    bad.write_text("tool: none\nsteps: 4.5\nroles: {actor: {}}\n")
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    codes = [
        subprocess.run([*shlex.split(hook["entry"]), *map(str, files)], env=env).returncode
        for files in ([good], [bad, good], [good, good])
    ]

    assert codes == [0, 1, 0]
    assert re.search(hook["files"], "configs/profile_small.yml")
