"""Each distribution in its own environment: what works, and what errors say of the rest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.packaging.conftest import DESK, ROOT

pytestmark = pytest.mark.slow

CONFIG = "run_dir: {home}/runs\ntool: {tool}\nsteps: [1]\nroles: {{actor: {{}}}}\n"
FOLDERS = sorted(file.parent.name for file in ROOT.glob("plugins/*/pyproject.toml"))
GROUPS = [
    f'entry-points."rlprof.{group}"' for group in ("tools", "engines", "exporters", "listeners")
]
OFFERING = [
    folder
    for folder in FOLDERS
    if any(group in (ROOT / "plugins" / folder / "pyproject.toml").read_text() for group in GROUPS)
]
"""Plugins that a config names; a driver imports a fleet."""
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
    if not one.name.endswith("__main__"):
        importlib.import_module(one.name)
print("all of", package.__file__)
"""
TRAIN = """
import rlprof, torch
with rlprof.open({config!r}) as prof:
    for _ in prof.steps([1]):
        with prof.phase("update"):
            print("trained", torch.ones(4).sum().item())
print(prof.run_dir)
"""
OFFERED = """
from rlprof import plugins
for kind, group in plugins.GROUPS.items():
    for one in plugins.entries(group):
        plugins.load(kind, one.name)
        print(one.dist.name, one.dist.version)
"""


def config_file(environment, tool: str) -> str:
    """Write a config that names *tool*."""
    file = environment.path / "profile.yaml"
    file.write_text(CONFIG.format(home=environment.path, tool=tool))
    return str(file)


def needed(dist, built):
    """Return the wheels of *dist* and of all our distributions that it requires."""
    names = {"rlprof-core": None}
    waiting = [dist.name]
    while waiting:
        name = waiting.pop()
        text = (built[name].folder / "pyproject.toml").read_text()
        (asked,) = re.findall(r"^dependencies = (\[.*?\])$", text, re.MULTILINE | re.DOTALL)
        names[name] = None
        waiting += [one for one in re.findall(r'"(rlprof[\w-]*)', asked) if one not in names]
    return {name: built[name].wheel for name in names}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_distribution_needs_only_its_requirements(folder, built, environment):
    """A distribution with its requirements imports completely and offers its plugins."""
    dist = next(dist for dist in built.values() if dist.folder.name == folder)
    made = environment(*needed(dist, built).values())

    said = made.run("-c", OFFERED + IMPORT_ALL, dist.package).splitlines()

    assert said[-1].startswith(f"all of {made.site}")
    assert (f"{dist.name} 0.1.0" in said) == (folder in OFFERING)


def test_a_tool_installed_from_wheels_records(built, environment, tmp_path):
    """Installed from wheels by pip, the torch tool records a step, listed and exported."""
    made = environment()
    pip = ["-m", "pip", "--disable-pip-version-check"]
    wheels = [str(dist.wheel) for dist in built.values()]
    made.run(*pip, "install", "-q", "--no-index", "--no-deps", "--target", str(made.site), *wheels)
    program = TRAIN.format(config=config_file(made, "torch"))

    run = made.run("-c", program).splitlines()[-1]

    assert (made.site / "bin/rlprof").exists()
    assert "whole" in made.rlprof("ls", run)
    assert "timeline.json.gz" in made.rlprof("export", run, "--to", "timeline")
    assert "No broken requirements found" in made.run(*pip, "check")


IMPORTED = """
import sys, torch
ours = sorted(name for name in sys.modules if name.startswith(("rlprof", "torch_npu")))
print("imported", torch.ones(2).sum().item(), ours)
"""


# failures.md: npu-missing
def test_import_torch_works_where_only_the_tool_for_npus_is_installed(built, environment):
    """rlprof-npu without torch_npu leaves `import torch` alone, and the run names the cause."""
    wheels = needed(built["rlprof-npu"], built) | needed(built["rlprof-cli"], built)
    made = environment(*wheels.values())
    program = IMPORTED + TRAIN.format(config=config_file(made, "npu"))

    said = made.run("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD="1").splitlines()

    assert "imported 2.0 []" in said
    listed = made.rlprof("ls", said[said.index("trained 4.0") + 1])
    assert "npu: torch_npu is not installed; install the torch_npu made for your torch" in listed


def test_rlprof_all_installs_only_our_distributions(built, product, environment):
    """`rlprof[all]` installs all of our distributions except the kit, and no other package."""
    made = environment()
    house = made.path / "wheels"
    house.mkdir()
    for dist in (product, *built.values()):
        (house / dist.wheel.name).write_bytes(dist.wheel.read_bytes())

    report = made.path / "report.json"
    made.run(
        "-m", "pip", "install", "-q", "--dry-run", "--report", str(report),
        "--no-index", "--find-links", str(house), "rlprof[all]",
    )  # fmt: skip

    chosen = {item["metadata"]["name"] for item in json.loads(report.read_bytes())["install"]}
    assert {"rlprof", *built} - {"rlprof-testing"} == chosen


def test_an_image_without_the_commands_records_and_says_what_to_install(built, environment):
    """An image with core and a tool records; other parts of rlprof say what to install."""
    made = environment(*needed(built["rlprof-torch"], built).values())
    program = TRAIN.format(config=config_file(made, "torch"))

    run = Path(made.run("-c", program).splitlines()[-1])

    assert len([*run.glob("step_*/update/*/torch/*")]) == 1
    assert "pip install rlprof-cli" in made.rlprof("ls", code=1)
    names = {"read": "run", "follow": "remote", "doctor": "cli", "testing": "testing"}
    for name, dist in names.items():
        said = made.run("-c", f"import rlprof; rlprof.{name}", code=1)
        assert f"ImportError: rlprof.{name}: needs rlprof-{dist}; pip install" in said


def test_core_and_the_commands_need_no_plugin(built, environment):
    """Core and the commands plan without any plugin."""
    core = environment(*(built[name].wheel for name in DESK))
    file = config_file(core, "torch")

    assert "one per outermost phase" in core.rlprof("plan", file, "--no-estimate")
    assert "No broken requirements found" in core.run("-m", "pip", "check")
