"""Every key, option and variable is documented with its default, and no others are."""

import ast
import re
import sys

import attrs
import pytest

import rlprof
from rlprof.config import Config, Counters, Fleet, Limits, Role, Spans
from rlprof_cli import main
from rlprof_torch import Torch, TorchMemory
from rlprof_torch._options import CONTENTS, MiniBatches
from tests.docs.pages import PAGES, ROOT, blocks, rows, section, words

sys.path += [str(ROOT / f"examples/third_party_{kind}/src") for kind in ("tool", "engine")]
from rlprof_mini import Mini
from rlprof_stacks import Stacks

PAGE = PAGES["docs/configuration.md"]
KEYS = {
    "Config": (Config, PAGE.partition("\n## ")[0]),
    "Role": (Role, section(PAGE, "`roles.<role>`")),
    **{
        one.__name__: (one, section(PAGE, f"`{one.__name__.lower()}`"))
        for one in (Limits, Spans, Counters, Fleet)
    },
}
SAID = {  # defaults that the tables give in words
    **{("Config", name): "below" for name in ("limits", "spans", "counters", "fleet")},
    ("Config", "scratch_dir"): "the system's temporary folder",
    ("Config", "tool"): "none",
    ("Config", "steps"): "`none`",
    ("Config", "listeners"): "`live`, where it is installed",
    ("Spans", "bytes"): "`1GB`",
    ("Counters", "bytes"): "`100MB`",
    ("Role", "ranks"): "`[0]`",
    ("Role", "phases"): "all",
    ("Role", "tool"): "that of the run",
    ("Limits", "bytes"): "`4GB`",
}
TORCH = PAGES["plugins/torch_profiler/README.md"]
PLUGINS = {
    "torch": (Torch.Options, section(TORCH, "`torch`: torch.profiler")),
    "torch_memory": (TorchMemory.Options, section(TORCH, "`torch_memory`: allocator snapshots")),
    "stacks": (Stacks.Options, PAGES["examples/third_party_tool/README.md"]),
    "mini": (Mini.Options, PAGES["examples/third_party_engine/README.md"]),
}
CONFIGS = [
    pytest.param(block.text, id=f"{path}-{number}")
    for path, text in PAGES.items()
    for number, block in enumerate(blocks(text, "yaml"))
]


def table(text):
    return {row[0].strip("`"): row[1:] for row in rows(text) if len(row) == 3}


def said(default):
    """Return the ways in which a table may write a default."""
    if default is None or default == () or isinstance(default, attrs.Factory):
        return {"none", "`[]`"}
    if isinstance(default, bool):
        return {f"`{str(default).lower()}`", str(default).lower()}
    return {f"{default:g}", f"{default}"} if isinstance(default, float) else {
        f"{default}", f"`{default}`"
    }  # fmt: skip


@pytest.mark.parametrize("name", [*KEYS, *PLUGINS])
def test_every_key_is_documented_with_its_default(name):
    """The tables list exactly the keys of each mapping and plugin, with their defaults."""
    cls, text = KEYS[name] if name in KEYS else PLUGINS[name]
    found = table(text)

    assert set(found) == {field.name for field in attrs.fields(cls)}
    for field in attrs.fields(cls):
        allowed = {SAID[name, field.name]} if (name, field.name) in SAID else said(field.default)
        assert found[field.name][0] in allowed, field.name


def test_defaults_given_in_words_are_right():
    """The defaults that the tables give in words are those of an empty config."""
    config, role = Config(), Role()

    assert (config.scratch_dir, config.tool, bool(config.steps)) == (None, (), False)
    assert (role.ranks, role.phases, role.tool) == ((0,), None, None)
    assert (Limits().bytes, Counters().bytes) == (4 * 10**9, 100 * 10**6)
    assert (config.limits, config.fleet) == (Limits(), Fleet())
    assert (config.counters, config.spans) == (Counters(), Spans(bytes=10**9))


def test_the_options_of_torch_and_the_words_of_verl_are_documented():
    """Torch's contents and schedule keys and all translated keys of verl are documented."""
    found = table(PLUGINS["torch"][1])
    text = section(PAGES["docs/verl.md"], "Words of verl's profiler")

    assert set(CONTENTS) <= set(words(found["contents"][1]))
    for field in attrs.fields(MiniBatches):
        assert field.name in found["schedule"][1]
    for name in {*Config.ELSEWHERE, *Role.ELSEWHERE} - {"ranks", "engine"}:
        assert re.search(rf"`{name}\b", text), name


def test_every_variable_is_documented():
    """The page lists exactly the environment variables that core reads."""
    read = set()
    for room in ("session", "rundir"):
        for file in (ROOT / "core/src/rlprof" / room).glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    read |= set(re.findall(r"^(?:[A-Z]+_)+[A-Z]+$|^RANK$", node.value))
    read -= {"PYTHONPATH"}  # set for child processes
    read -= {"SC_CLK_TCK"}  # the system's
    read |= {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "TMPDIR"}  # built; Python's own

    documented = {
        name for name in words(section(PAGE, "From the environment")) if name == name.upper()
    }

    assert documented == read


@pytest.mark.parametrize("text", CONFIGS)
def test_every_config_in_the_docs_is_valid(text, tmp_path, monkeypatch, capsys):
    """`rlprof check` accepts every config in the docs."""
    rlprof.register("tool", "stacks", Stacks)
    rlprof.register("engine", "mini", Mini)
    (tmp_path / "profile.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)

    code = main(["check", "profile.yaml"])

    assert capsys.readouterr().err == ""
    assert code == 0
