"""Who may import whom: imports run one way, and what is heavy is imported where it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core/src/rlprof"

# Each room may import those before it; `errors` and `types` are the common words.
ORDER = [
    "errors",
    "types",
    "rundir",
    "schedule",
    "hookspecs",
    "plugins",
    "config",
    "control",
    "session",
    "fleets",
    "doctor",
    "testing",
    "cli",
]
HEAVY = {
    "torch",
    "ray",
    "vllm",
    "sglang",
    "torch_npu",
    "yaml",
    "omegaconf",
    "click",
    "typer",
    "rich",
}


def imports(file: Path, *, module_level: bool = False):
    """Yield the modules *file* imports, type-checking blocks left out."""
    tree = ast.parse(file.read_text())
    nodes = tree.body if module_level else ast.walk(tree)
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in nodes:
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "rlprof" and len(parts) > 1 else None


def files(folder: Path):
    return sorted(folder.rglob("*.py"))


@pytest.mark.parametrize("file", files(CORE), ids=lambda f: str(f.relative_to(CORE)))
def test_rooms_import_only_rooms_before_them(file):
    """Data flow down and never back up."""
    own = file.relative_to(CORE).parts[0].removesuffix(".py")
    if own == "__init__":
        return  # the front door names every room, lazily

    for module in imports(file):
        other = room(module)
        if other is not None and other != own:
            assert other in ORDER, f"{module} is no room"
            assert ORDER.index(other) < ORDER.index(own), f"{file.name} imports {module}"


def siblings(package: Path) -> dict[str, set[str]]:
    """Say which modules of *package* each of them imports, type-checking blocks included."""
    names = {
        ".".join((package.name, *file.relative_to(package).with_suffix("").parts)): file
        for file in files(package)
        if file != package / "__init__.py"  # the front door names all, and is named by all
        and file.parent.name != "rundir"  # the reader in it has circles
    }
    names = {name.removesuffix(".__init__"): file for name, file in names.items()}
    found: dict[str, set[str]] = {}
    for name, file in names.items():
        nodes = ast.walk(ast.parse(file.read_text()))
        lines = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        every = [(str(line.module), alias.name) for line in lines for alias in line.names]
        wanted = {f"{module}.{own}" if f"{module}.{own}" in names else module
                  for module, own in every}  # fmt: skip
        found[name] = wanted & names.keys() - {name}
    return found


@pytest.mark.parametrize(
    "package",
    [CORE, *sorted((ROOT / "plugins").glob("*/src/*"))],
    ids=lambda package: package.name,
)
def test_no_modules_import_each_other_in_a_circle(package):
    """Imports for types count: the files of a package can be read from one end to the other."""
    circle: list[str] = []
    try:
        TopologicalSorter(siblings(package)).prepare()
    except CycleError as error:
        circle = error.args[1]

    assert circle == []


@pytest.mark.parametrize(
    "file",
    [*files(CORE), *files(ROOT / "plugins")],
    ids=lambda f: str(f.relative_to(ROOT)),
)
def test_heavy_packages_are_imported_inside_functions(file):
    """Importing rlprof or a plugin loads no back end."""
    loaded = {module.split(".")[0] for module in imports(file, module_level=True)}

    assert not loaded & HEAVY


@pytest.mark.parametrize("plugin", sorted((ROOT / "plugins").iterdir()), ids=lambda p: p.name)
def test_plugins_import_core_by_its_public_names(plugin):
    """A plugin needs nothing a stranger could not have: public names of what it declares."""
    own = next((plugin / "src").iterdir()).name
    project = (plugin / "pyproject.toml").read_text()
    (wanted,) = re.findall(r"^dependencies = (.*)$", project, re.MULTILINE)
    declared = {name.replace("-", "_") for name in re.findall(r'"([\w-]+)', wanted)}

    for file in files(plugin / "src"):
        for module in imports(file):
            parts = module.split(".")
            if parts[0] == "rlprof":
                assert not any(part.startswith("_") for part in parts), f"{file.name}: {module}"
            if parts[0].startswith("rlprof_") and parts[0] != own:
                assert parts[0] in declared, f"{file.name}: {module}"
                assert not any(part.startswith("_") for part in parts), f"{file.name}: {module}"


def swallows_all(handler: ast.ExceptHandler) -> bool:
    """Whether *handler* catches everything and does not just tidy up and pass it on."""
    names = "BaseException" if handler.type is None else ast.unparse(handler.type)
    last = handler.body[-1]
    passes_on = isinstance(last, ast.Raise) and last.exc is None
    return bool(re.search(r"\b(Base)?Exception\b", names)) and not passes_on


def test_core_catches_everything_only_at_its_boundaries():
    """`except Exception` stands where strangers' code is called, and nowhere else."""
    places = {
        str(file.relative_to(CORE))
        for file in files(CORE)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ExceptHandler) and swallows_all(node)
    }

    assert places == {
        "cli/_cautions.py",  # what a plugin says that a user should know
        "cli/_declared.py",  # the arguments an exporter declares
        "cli/_engines.py",  # what an engine's plugin says of who records
        "cli/_offered.py",  # importing a command
        "cli/export.py",  # an exporter, after the run
        "config/_tools.py",  # configure at launch: before the run, told as a fault
        "doctor/child.py",  # a tool's sample, in the child
        "plugins.py",  # importing and making a plugin
        "rundir/_journal.py",  # the text of a user's own objects
        "session/_boundary.py",  # everything in a run
        "session/_devices.py",  # NVIDIA's own library, perhaps without a driver
        "session/_sampler.py",  # what an engine's plugin counts
        "session/_background.py",  # hands what was raised to who waits
        "session/_worker.py",  # hands what was raised to who waits
        "session/calibrate_process.py",  # a tool's sample, in the helper process
        "session/export_process.py",  # export, likewise
        "testing/_engine.py",  # the kit: what a plugin raises is what it is tested for
        "testing/_exports.py",
        "testing/_windows.py",
    }


@pytest.mark.slow
def test_import_rlprof_loads_no_back_end_and_no_plugin():
    """Import rlprof, and an off session, load neither torch, ray, yaml, a CLI nor a plugin."""
    code = (
        "import sys, rlprof\n"
        "with rlprof.open(None) as prof:\n"
        "    for step in prof.steps(range(3)):\n"
        "        with prof.phase('a'), prof.span('b'): prof.minibatch()\n"
        "@rlprof.annotate\n"
        "def f(): pass\n"
        "f()\n"
        "print(*sorted(sys.modules))"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    loaded = set(result.stdout.split())
    heavy = HEAVY | {"argparse", "attrs", "pluggy", "importlib.metadata", "rlprof_torch"}
    assert not loaded & heavy
    assert not [name for name in loaded if name.startswith(("rlprof.cli", "rlprof.config"))]


@pytest.mark.slow
def test_a_process_without_its_window_loads_no_tool(tmp_path):
    """A rank that is not chosen loads the plugin's description and not what it drives."""
    config = {"run_dir": str(tmp_path), "tool": "torch", "steps": [1], "roles": {"actor": {}}}
    code = (
        "import sys, os, rlprof\n"
        f"prof = rlprof.open({config!r}, role='critic')\n"
        "prof.step(1)\n"
        "prof.close()\n"
        "print('torch' in sys.modules, 'rlprof_torch' in sys.modules)"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == ["False", "False"]
