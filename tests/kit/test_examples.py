"""Plugins of examples/ and those that `rlprof new` writes, installed by pip."""

import io
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from rlprof.plugins import GROUPS
from rlprof_cli import main
from tests.cases import cases
from tests.kit.sites import install, its_tests
from tests.waiting import python

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(name="example", scope="module")
def _example(request, tmp_path_factory):
    """Copy an example out of this repository and install it."""
    home = tmp_path_factory.mktemp("example")
    copy = home / request.param
    left_out = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(EXAMPLES / request.param, copy, ignore=left_out)
    return copy, install(home / "site", copy)


@pytest.mark.slow
@cases(
    "example, listed",
    ("third_party_tool", r"tool +stacks +rlprof-stacks 0\.1\.0 +yes"),
    ("third_party_engine", r"engine +mini +rlprof-mini 0\.1\.0 +yes"),
    indirect=["example"],
)
def test_an_example_keeps_every_law(example, listed):
    """An installed example is listed by `rlprof plugins` and passes its tests."""
    folder, env = example

    said = its_tests(folder, env)
    plugins = python("-m", "rlprof", "plugins", env=env)

    assert "passed" in said
    assert re.search(listed, plugins.stdout), plugins.stdout + plugins.stderr


@pytest.mark.slow
@pytest.mark.parametrize("example", ["third_party_engine"], indirect=True)
def test_the_program_in_the_readme_of_the_engine_runs(example, tmp_path):
    """The program and config of the engine's README record a whole window."""
    folder, env = example
    readme = (folder / "README.md").read_text()
    (config,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "profile.yaml").write_text(config)
    (tmp_path / "train.py").write_text(
        f"{program}\nfor one in rlprof.read(prof.run_dir).captures: print(one.window.id, one.state)"
    )

    done = python("train.py", cwd=tmp_path, env=env)

    assert done.stdout == "2/rollout whole\n", done.stderr


KINDS = tuple(GROUPS)
IGNORED = "COM812,CPY,D105,D107,D203,D213,D400,D401,EM,TRY003,ANN401"
IN_TESTS = ["S101", "ANN", "D101", "D102", "D103", "INP001", "RUF012", "EM", "TRY003", "ERA001"]


@pytest.fixture(name="written", scope="module")
def _written(tmp_path_factory):
    """Write a plugin of each kind and install it; return the folders and the environment."""
    home, said = tmp_path_factory.mktemp("new"), io.StringIO()
    with redirect_stdout(said):
        codes = [main(["new", kind, f"my_{kind}", "--dir", str(home)]) for kind in KINDS]
    folders = {kind: home / f"rlprof-my-{kind}" for kind in KINDS}
    assert codes == [0] * len(KINDS)
    assert [kind for kind, folder in folders.items() if f"cd {folder}" not in said.getvalue()] == []
    return folders, install(home / "site", *folders.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_plugin_passes_the_kit(kind, written):
    """A plugin that `rlprof new` writes installs and passes its tests."""
    folders, env = written

    said = its_tests(folders[kind], env)

    assert "passed" in said


@pytest.mark.slow
def test_a_generated_plugin_passes_ruff_and_mypy(written, tmp_path):
    """Generated plugins pass ruff with all rules, its formatter and mypy --strict."""
    folders = list(written[0].values())
    ruff = ["-m", "ruff"]
    in_tests = ",".join(f"tests/**:{rule}" for rule in IN_TESTS)
    rules = ["--select", "ALL", "--ignore", IGNORED, "--per-file-ignores", in_tests]
    where = ["--isolated", "--line-length", "100", "--target-version", "py310", "."]
    mypy = ["-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "mypy")]
    for folder, argv in (
        *((one, [*ruff, "check", *rules, *where]) for one in folders),
        *((one, [*ruff, "format", "--check", *where]) for one in folders),
        (tmp_path, [*mypy, *(f"{one}/src" for one in folders)]),
    ):
        done = python(*argv, cwd=folder)

        assert done.returncode == 0, done.stdout + done.stderr


@cases(
    "name, folder, told",
    ("My-Tool", "", "'My-Tool' cannot be the name of a plugin; use up to 40 small letters"),
    ("My-Tool", "", "single '_', beginning with a letter; 'my_tool' would do"),
    ("import", "", "'import' is a keyword of Python; choose another name"),
    ("torch", "", "tool 'torch' is offered by rlprof-torch; choose another name"),
    ("report", "", "rlprof-report is a distribution of rlprof itself; choose another name"),
    ("mine", "", "rlprof-mine exists already; remove it, or choose another"),
    ("other", "nope", "nope is not a folder; create it, or name another"),
)
def test_rlprof_new_refuses_what_it_cannot_write(name, folder, told, tmp_path, capsys):
    """`rlprof new` refuses invalid and taken names and existing folders, and writes nothing."""
    work = tmp_path / "rlprof-mine/work.txt"
    work.parent.mkdir()
    work.touch()

    code = main(["new", "tool", name, "--dir", str(tmp_path / folder)])

    assert code == 1
    assert told in capsys.readouterr().err
    assert [*tmp_path.rglob("*")] == [work.parent, work]
