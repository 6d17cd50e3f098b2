"""docs/doctor.md lists every finding, and its example is what the command prints."""

import ast
import re
import sys

import pytest
import yaml

from rlprof.config import load_config
from rlprof_cli.doctor import _profilers
from tests.docs.pages import PAGES, ROOT, blocks
from tests.doctor.running import doctor

TEXT = PAGES["docs/doctor.md"]
PLAIN = re.sub(r"[`*]", "", TEXT)


def findings():
    """Yield the longest piece of constant text of every finding in the source."""
    for file in sorted((ROOT / "plugins/cli/src/rlprof_cli/doctor").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "what":
                value = node.value
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                value = node.args[2] if len(node.args) > 2 else ast.Constant("")
            else:
                continue
            inner = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
            texts = [text.strip(" ,;:()") for text in inner if isinstance(text, str)]
            if any(texts):
                yield max(texts, key=len).replace("`", "")


def test_every_finding_and_every_variable_is_explained():
    """The page contains the words of every finding and every environment variable it reads."""
    words = {*findings()} - {"theirs", "it did not say why"}
    variables = {f"`{name}`" for name in (*_profilers._INJECTED, *_profilers._ANNOUNCED)}

    assert len(words) > 40
    assert {one for one in words if one not in PLAIN} == set()
    assert {one for one in variables if one not in TEXT} == set()


@pytest.mark.slow
def test_the_example_in_the_docs_is_what_doctor_prints(tmp_path):
    """The config of the page gives the lines of the page, except for numbers and host details."""
    (config,) = (block.text for block in blocks(TEXT, "yaml"))
    (tmp_path / "profile.yaml").write_text(config)

    told = doctor("profile.yaml", cwd=tmp_path, env={"CUDA_VISIBLE_DEVICES": ""})

    def shape(text):
        lines = [line for line in text.splitlines() if re.match(r"(ok|warn|BAD)\b", line)]
        ours = [re.sub(r"[\d.,]+( [km]?B| m?s)?", "#", line) for line in lines]
        wheres = ("clocks", "run_dir", "scratch_dir", "ulimit")  # the machine's own
        return [line for line in ours if not line[6:].startswith(wheres)]

    (shown,) = (block.text for block in blocks(TEXT, "text"))
    assert told.code == 1, told.text
    assert shape(shown) == shape(told.text)
    assert shown.splitlines()[-1].startswith("not everything will work here: ")
    assert load_config(yaml.safe_load(config)).roles


def test_the_code_in_the_docs_runs(capsys):
    """The code for a training process prints warnings and errors only."""
    (block,) = blocks(TEXT, "python")

    exec(compile(block.text, "doctor.md", "exec"), {})  # noqa: S102 -- ours

    printed = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("warn ", "BAD ")) for line in printed), sys.version
