"""The API, the reference and the hooks in the docs exist and are complete."""

import importlib.util
import inspect
import re

import attrs
import pytest

import rlprof
from rlprof import hookspecs, plugins
from rlprof.config import Limits
from rlprof.testing import EngineTests, ToolTests
from rlprof.types import Recording
from rlprof_cli import command_line, contract
from rlprof_cli.offers import COMMANDS
from rlprof_run import CaptureResult, Process, Run, Span
from tests.docs.pages import PAGES, ROOT, section
from tests.waiting import python

METHODS = [name for name in dir(rlprof.Off) if not name.startswith("_")]
ROOMS = {"control", "doctor", "hookspecs", "testing", "types"}
GROUPS = {group.rpartition(".")[2] for group in (*plugins.GROUPS.values(), COMMANDS)}
FILES = {"json"}
"""Values of x for which `rlprof.x` is the name of a file."""
TEXTS = "\n".join((*PAGES.values(), rlprof.__doc__, hookspecs.__doc__))
NAMED = re.findall(r"(?<![\w./\"-])(?<!from )(?<!-m )rlprof(?:\.[A-Za-z_]\w*)+(?![\w/-])", TEXTS)
DOTTED = sorted({name for name in NAMED if name.split(".")[1] not in {*GROUPS, *FILES}})
"""Names that the pages write as `rlprof.x` or `rlprof.x.y`, except in imports and `-m`."""


def test_an_unknown_name_is_an_error_and_late_names_are_listed():
    """An unknown name of rlprof is an AttributeError, and `dir` lists modules imported late."""
    with pytest.raises(AttributeError, match="module 'rlprof' has no attribute 'nope'"):
        _ = rlprof.nope
    assert set(dir(rlprof)) >= ROOMS


@pytest.mark.slow
def test_every_dotted_name_exists_after_one_import():
    """Every dotted name in the docs works after `import rlprof` alone."""
    program = (
        "import os, sys, rlprof\n"
        "for name in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"  # so that no name finds what another has imported
        "        eval(name)\n"
        "        print(name, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )

    done = python("-c", program, *DOTTED, check=True)

    assert done.stdout.split() == DOTTED
    assert {"rlprof.hookspecs.Recorder", "rlprof.doctor.findings", "rlprof.testing"} <= set(DOTTED)


def test_every_method_of_a_session_in_the_docs_exists():
    """Every method that a page calls on `prof` exists."""
    for path, text in PAGES.items():
        for name in re.findall(r"\bprof\.(\w+)", text):
            assert name in METHODS, f"{path}: prof.{name}"


SPEC = importlib.util.spec_from_file_location("reference", ROOT / "docs/site/reference.py")
REFERENCE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(REFERENCE)
REFERENCE_OF_COMMANDS, API = REFERENCE.commands(), REFERENCE.api()
PARSERS = command_line().parse_args([]).parsers


def test_every_installed_command_has_a_section_with_all_its_arguments():
    """The reference has every installed command and all its arguments with help."""
    assert {entry.name for entry in plugins.entries(COMMANDS)} <= set(PARSERS)
    assert [name for name in PARSERS if f"`rlprof {name}" not in PAGES["docs/commands.md"]] == []
    for name, parser in PARSERS.items():
        actions = [one for one in parser._actions if one.dest not in REFERENCE.SHARED]
        text = section(REFERENCE_OF_COMMANDS, f"`rlprof {name}`")
        rows = re.findall(r"^\| `.+?` \| (.+) \|$", text, re.MULTILINE)

        assert (len(rows), all(rows)) == (len(actions), True), name


def test_every_public_name_has_an_entry():
    """The API page has an entry for each public name of `rlprof`."""
    entries = {entry.rpartition(".")[2] for entry in re.findall(r"^::: (.*)$", API, re.MULTILINE)}
    names = {*rlprof.__all__} - ROOMS

    assert {getattr(getattr(rlprof, name), "__name__", name) for name in names} <= entries


GUIDE, HOOKS = PAGES["docs/writing-a-plugin.md"], PAGES["docs/hooks.md"]
DECLARED = re.findall(r"^`(\w+)`$", inspect.getdoc(hookspecs.Recorder), re.MULTILINE)


@pytest.mark.parametrize("kind", ["tool", "engine", "exporter"])
def test_every_hook_and_its_arguments_are_drawn(kind):
    """docs/hooks.md draws every hook of each kind of plugin with its arguments."""
    (picture,) = re.findall(rf"\n## An? {kind}\n(?:(?!\n## ).)*?```\n(.*?)```", HOOKS, re.DOTALL)

    for hook, arguments in contract.arguments(kind).items():
        assert f"{hook}(" in picture, f"{kind}: {hook} is not drawn"
        for argument in arguments:
            assert re.search(rf"\b{argument}\b", picture), f"{kind}: {hook} without {argument}"
        for drawn in re.findall(rf"\b{hook}\(([^)\n…]*)\)", picture):  # where it fits on a line
            assert arguments == [argument.partition("=")[0] for argument in drawn.split(", ")]


def test_every_member_a_plugin_may_declare_is_documented():
    """The guide documents every member that core or the kit reads from a plugin or its tests."""
    members = [name for name in vars(Recording) if not name.startswith("_")]

    for name in (*DECLARED, *members):
        assert re.search(rf"^\| `{name}(\(.*?\))?` \|", GUIDE, re.MULTILINE), name
    for name in ("plugin", "options", "produces", "works_here", "heavy", "name"):
        assert hasattr(ToolTests, name) or name == "plugin"
        assert f"| `{name}` |" in GUIDE
    for name in ("engine", "work", "kill", "loop", "cannot_be_killed"):
        assert hasattr(EngineTests, name)
        assert name in GUIDE


def test_every_timeout_is_drawn_with_its_default():
    """docs/hooks.md names each timeout with its default in seconds."""
    for name, seconds in attrs.asdict(Limits()).items():
        if name.endswith("_s"):
            assert name in HOOKS
            assert f"{seconds:g} s" in HOOKS


def test_attributes_of_a_run_in_the_guide_exist():
    """The attributes of runs, captures, processes and spans that the guide names exist."""
    (table,) = re.findall(r"\| of the run \| is \|\n(.*?)\n\n", GUIDE, re.DOTALL)
    classes = (Run, CaptureResult, Process, Span)
    known = {name for cls in classes for name in (*dir(cls), *attrs.fields_dict(cls))}

    named = set(re.findall(r"`(\w+)", table))

    assert named <= known
    assert {"captures", "processes", "spans", "problems"} <= named
