"""The plugins from outside, installed as anybody installs them, pass their own tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.sites import install, its_tests

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(name="example", scope="module")
def _example(request, tmp_path_factory):
    """Copy an example away from this repository, and install it."""
    home = tmp_path_factory.mktemp("example")
    copy = home / request.param
    left_out = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(EXAMPLES / request.param, copy, ignore=left_out)
    return copy, install(home / "site", copy)


@pytest.mark.parametrize(
    ("example", "listed"),
    [
        ("third_party_tool", r"tool +stacks +rlprof-stacks 0\.1\.0 +yes"),
        ("third_party_engine", r"engine +mini +rlprof-mini 0\.1\.0 +yes"),
    ],
    indirect=["example"],
)
def test_an_example_keeps_every_law(example, listed):
    """Its wheel holds what it needs, `rlprof plugins` lists it, its tests pass."""
    folder, env = example

    said = its_tests(folder, env)
    plugins = subprocess.run(
        [sys.executable, "-m", "rlprof", "plugins"], env=env, capture_output=True, text=True
    )

    assert "passed" in said
    assert re.search(listed, plugins.stdout), plugins.stdout + plugins.stderr


@pytest.mark.parametrize("example", ["third_party_engine"], indirect=True)
def test_the_program_in_the_readme_of_the_engine_runs(example, tmp_path):
    """Its lines, with its config, record a window of the engine."""
    folder, env = example
    readme = (folder / "README.md").read_text()
    (config,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "profile.yaml").write_text(config)
    (tmp_path / "train.py").write_text(
        f"{program}\nfor one in rlprof.read(prof.run_dir).captures: print(one.window.id, one.state)"
    )

    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=env, capture_output=True, text=True
    )

    assert done.stdout == "2/rollout whole\n", done.stderr
