"""Imports run in one direction, and processes load only what they use."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core/src/rlprof"
INSIDE = {
    "run": {"rlprof.session._exports"},
    "cli": {"rlprof.session._current", "rlprof.session.interpreter"},
    "npu": {"rlprof.session.interpreter"},
    "bucket": {"rlprof.session.interpreter"},
    "testing": {
        "rlprof.config._tools",
        "rlprof.session._engines",
        "rlprof.session._loops",
        "rlprof.session._calls",
        "rlprof.session._exports",
        "rlprof.session.interpreter",
    },
}
"""Private modules of core that these plugins import; this list may only get shorter."""
REACHES = {"means", "scribe", "boundary"}
"""Attributes of a session that are core's own."""
OPTIONAL = {"run": {"rlprof_report"}, "cli": {"rlprof_verl"}}
"""Imports of other distributions that say what to install if it is missing."""

# Each may import those before it; `errors` and `types` are for all.
ORDER = [
    "errors",
    "distributions",
    "types",
    "answers",
    "rundir",
    "schedule",
    "hookspecs",
    "listenerspecs",
    "plugins",
    "config",
    "session",
    "control",
    "doctor",
    "testing",
    "__main__",
]
BACK_ENDS = {"torch", "ray", "vllm", "sglang", "torch_npu"}
HEAVY = BACK_ENDS | {"yaml", "omegaconf", "click", "typer", "rich"}


@cache
def parsed(file: Path) -> ast.Module:
    """Parse *file*, once for all tests."""
    return ast.parse(file.read_text())


@cache
def imports(file: Path) -> tuple[str, ...]:
    """List the modules that *file* imports, except in type-checking blocks."""
    tree = parsed(file)
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


def files(folder: Path):
    return sorted(folder.rglob("*.py"))


def test_modules_of_core_import_only_earlier_ones():
    """A module or package of core imports only those before it in ORDER."""
    wrong = []
    for file in files(CORE):
        own = file.relative_to(CORE).parts[0].removesuffix(".py")
        for module in imports(file) if own != "__init__" else ():  # it imports all, lazily
            other = module.split(".")[1] if module.startswith("rlprof.") else None
            is_elsewhere = module.startswith("rlprof_")
            if (is_elsewhere and own not in ("control", "doctor", "testing")) or (
                other not in (None, own, *ORDER[: ORDER.index(own)])
            ):
                wrong.append(f"{file.relative_to(CORE)} imports {module}")

    assert wrong == []


def siblings(package: Path) -> dict[str, set[str]]:
    """Return the modules that each module of *package* imports, type-checking blocks included."""
    names = {
        ".".join((package.name, *file.relative_to(package).with_suffix("").parts)): file
        for file in files(package)
        if file != package / "__init__.py"  # it imports all, and all import it
    }
    names = {name.removesuffix(".__init__"): file for name, file in names.items()}
    found: dict[str, set[str]] = {}
    for name, file in names.items():
        nodes = ast.walk(parsed(file))
        lines = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        every = [(str(line.module), alias.name) for line in lines for alias in line.names]
        wanted = {f"{module}.{own}" if f"{module}.{own}" in names else module
                  for module, own in every}  # fmt: skip
        found[name] = wanted & names.keys() - {name}
    return found


@pytest.mark.parametrize(
    "package",
    [CORE, *sorted(one for one in (ROOT / "plugins").glob("*/src/*") if one.name != "rlprof_run")],
    ids=lambda package: package.name,
)
def test_no_modules_import_each_other_in_a_circle(package):
    """No modules of a package import each other in a circle, even for types."""
    circle: list[str] = []
    try:
        TopologicalSorter(siblings(package)).prepare()
    except CycleError as error:
        circle = error.args[1]

    assert circle == []


@pytest.mark.parametrize("plugin", sorted((ROOT / "plugins").iterdir()), ids=lambda p: p.name)
def test_plugins_import_core_by_its_public_names(plugin):
    """A plugin uses public names of core and of distributions that it declares."""
    own = next((plugin / "src").iterdir()).name
    inside = INSIDE.get(plugin.name, set())
    used = set()
    project = (plugin / "pyproject.toml").read_text()
    (wanted,) = re.findall(r"^dependencies = (.*)$", project, re.MULTILINE)
    declared = {name.replace("-", "_") for name in re.findall(r'"([\w-]+)', wanted)}

    for file in files(plugin / "src"):
        reached = {node.attr for node in ast.walk(parsed(file)) if isinstance(node, ast.Attribute)}
        assert plugin.name == "testing" or not REACHES & reached, file.name
        for module in imports(file):
            parts = module.split(".")
            private = {one for one in inside if module.startswith(one)}
            used |= private
            if parts[0] == "rlprof" and not private:
                assert parts[1:2] != ["session"], f"{file.name}: {module}"
                assert not any(part.startswith("_") for part in parts), f"{file.name}: {module}"
            if parts[0].startswith("rlprof_") and parts[0] != own:
                is_declared = parts[0] in declared | OPTIONAL.get(plugin.name, set())
                assert is_declared, f"{file.name}: {module}"
                assert not any(part.startswith("_") for part in parts), f"{file.name}: {module}"
    assert used == inside


def loaded_by(code: str) -> set[str]:
    """Run *code* in a new Python; return the names of the modules it loaded."""
    code += "\nimport sys; print(*sys.modules)"
    argv = [sys.executable, "-c", code]
    return set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.slow
def test_import_rlprof_loads_no_back_end_and_no_plugin():
    """`import rlprof` and an off session load no back end, YAML, CLI or plugin."""
    code = (
        "import rlprof\n"
        "with rlprof.open(None) as prof:\n"
        "    for step in prof.steps(range(3)):\n"
        "        with prof.phase('a'), prof.span('b'): prof.minibatch()\n"
        "@rlprof.annotate\n"
        "def f(): pass\n"
        "f()"
    )

    loaded = loaded_by(code)
    heavy = HEAVY | {"argparse", "attrs", "pluggy", "importlib.metadata", "pytest"}
    assert not loaded & heavy
    assert not [name for name in loaded if name.startswith(("rlprof_", "rlprof.config"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "ranks", "recorders"),
    [("actor", "[0]", True), ("actor", "[1]", False), ("critic", "[0]", False)],
)
def test_an_idle_process_loads_no_code_for_windows_it_does_not_have(
    tmp_path, role, ranks, recorders
):
    """A process without a window loads no code for exports, requests and engines."""
    code = (
        "import rlprof\n"
        f"config = {{'run_dir': {str(tmp_path)!r}, 'tool': 'torch', 'steps': [5]}}\n"
        f"config['roles'] = {{'actor': {{'ranks': {ranks}}}}}\n"
        f"prof = rlprof.open(config, role={role!r}, world_size=2)\n"
        "for step in prof.steps([1, 2]):\n"
        "    with prof.phase('rollout'), prof.span('a'): pass\n"
        f"if not {recorders}: prof.close()"  # it looks for exports
    )

    loaded = loaded_by(code)
    later = ("artifacts", "engines", "exports", "loops", "off")
    assert not loaded & {f"rlprof.session._{name}" for name in later}
    assert ("rlprof.session._recorder" in loaded) == recorders
    packages = {name.partition(".")[0] for name in loaded}
    ours = {name for name in packages if name.startswith(("torch", "rlprof_"))}
    assert role == "actor" or ours == {"rlprof_live"}
