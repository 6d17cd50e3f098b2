"""Documentation that cannot rot: its code runs, and every key is in it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import attrs
import pytest
import yaml

import rlprof
from rlprof.cli import COMMANDS, main
from rlprof.config import Config, Limits, Role, load_config
from rlprof_torch import Torch, TorchMemory
from rlprof_torch._options import MiniBatches

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
TORCH = (ROOT / "plugins/torch_profiler/README.md").read_text()


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("cls", [Config, Role, Limits], ids=lambda cls: cls.__name__)
def test_every_key_is_documented(cls):
    """docs/configuration.md has a row for every key and its default."""
    for field in attrs.fields(cls):
        row = re.search(rf"^\| `{field.name}` \| (.*?) \|", CONFIGURATION, re.MULTILINE)
        assert row, f"{field.name} is not in docs/configuration.md"
        if type(field.default) in (int, float, str) and field.name != "bytes":
            assert f"{field.default:g}" if type(field.default) is float else field.default in row[1]


@pytest.mark.parametrize("plugin", [Torch, TorchMemory], ids=lambda cls: cls.__name__)
def test_every_option_is_documented(plugin):
    """A plugin's README has a row for every option, with its default."""
    for field in attrs.fields(plugin.Options):
        row = re.search(rf"^\| `{field.name}` \| (.*?) \|", TORCH, re.MULTILINE)
        assert row, f"{field.name} is not in the README of rlprof-torch"
        if type(field.default) in (bool, int):
            assert str(field.default).lower() in row[1]
    assert all(field.name in TORCH for field in attrs.fields(MiniBatches))


def test_no_documented_key_is_invented():
    """What the tables of docs/configuration.md name exists."""
    known = {field.name for cls in (Config, Role, Limits) for field in attrs.fields(cls)}
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", CONFIGURATION, re.MULTILINE))

    assert rows == known


@pytest.mark.parametrize("text", [README, CONFIGURATION], ids=["README", "configuration"])
def test_configs_in_the_docs_are_accepted(text):
    """Every YAML block is a config that loads."""
    found = blocks(text, "yaml")

    assert found
    for block in found:
        assert load_config(yaml.safe_load(block)).roles


@pytest.mark.slow
def test_the_readme_shows_what_happens(tmp_path, monkeypatch, capsys):
    """The README's ten lines run, and `rlprof ls` prints the table shown there."""
    (script,) = blocks(README, "python")
    (config,) = blocks(README, "yaml")
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "profile.yaml").write_text(config)
    monkeypatch.chdir(tmp_path)

    subprocess.run([sys.executable, "train.py"], check=True)
    (run,) = (tmp_path / "outputs/profile").iterdir()
    code = main(["ls", str(run)]) or main(["export", str(run), "--to", "timeline"])

    def shape(text):  # numbers, sizes and times vary
        return [re.sub(r"[\d.]+( k?B| ms| s)?", "#", line).split() for line in text.splitlines()]

    printed = capsys.readouterr().out
    shown = next(block for block in blocks(README, "console") if "rlprof ls" in block)
    table = [line for line in shown.splitlines() if line.startswith(("WINDOW", "2/", "4/"))]
    assert code == 0
    assert shape("\n".join(table)) == shape("\n".join(printed.splitlines()[2:5]))
    assert "timeline.json.gz" in printed


def test_the_readme_shows_the_errors_there_are(tmp_path, capsys, monkeypatch):
    """The faults in the README are those the command prints."""
    (tmp_path / "profile.yaml").write_text(
        "tool: trch\nsteps: [2, 4.5]\nroles:\n  actor: {phase: update}\n"
    )
    monkeypatch.chdir(tmp_path)
    shown = next(block for block in blocks(README, "console") if "rlprof check" in block)

    code = main(["check", "profile.yaml"])

    assert code == 1
    assert capsys.readouterr().err.splitlines() == shown.splitlines()[1:]


def test_the_plugin_table_is_what_is_here():
    """The README lists exactly the plugins of this repository."""
    rows = re.findall(
        r"^\|.*?\| (tool|engine|exporter) \| `(\w+)` \| `([\w-]+)` \|", README, re.MULTILINE
    )
    offered = {
        (kind, entry.name, entry.dist.metadata["Name"])
        for kind in ("tool", "engine", "exporter")
        for entry in metadata.entry_points(group=f"rlprof.{kind}s")
    }

    assert set(rows) == offered


@pytest.mark.parametrize("command", COMMANDS, ids=lambda module: module.__name__.split(".")[-1])
def test_every_command_explains_itself(command, capsys):
    """`rlprof COMMAND --help` says in sentences what the command does."""
    with pytest.raises(SystemExit) as exit_:
        main([command.__name__.rpartition(".")[2], "--help"])

    text = capsys.readouterr().out
    assert exit_.value.code == 0
    assert len(text.split()) > 40


def test_public_names_are_there():
    """Everything rlprof says it offers can be had, and has a docstring."""
    for name in rlprof.__all__:
        assert getattr(rlprof, name).__doc__, name

    with pytest.raises(AttributeError, match="module 'rlprof' has no attribute 'nope'"):
        _ = rlprof.nope


@pytest.mark.slow
def test_the_plugin_in_the_docs_works(tmp_path):
    """The class core/README.md shows records a window at the first try."""
    (block,) = blocks((ROOT / "core/README.md").read_text(), "python")
    config = {"run_dir": str(tmp_path), "tool": "mine", "steps": [1], "roles": {"actor": {}}}
    rest = (
        f"with rlprof.open({config!r}) as prof:\n"
        "    prof.step(1)\n"
        "    with prof.phase('rollout'): pass\n"
        "(capture,) = rlprof.read(prof.run_dir).captures\n"
        "print(capture.state, (prof.run_dir / capture.artifacts[0].path).read_text())\n"
    )
    (tmp_path / "mine.py").write_text(f"{block}\n{rest}")

    result = subprocess.run(
        [sys.executable, str(tmp_path / "mine.py")], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == ["whole", "1/rollout"]
