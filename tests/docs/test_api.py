"""What the pages write of `rlprof` in Python is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

import rlprof
from rlprof import hookspecs, plugins
from rlprof_cli import command_line
from rlprof_cli.offers import COMMANDS, commands
from tests.docs.pages import PAGES, ROOT, section, sections

METHODS = [name for name in dir(rlprof.Off) if not name.startswith("_")]
ROOMS = {"control", "doctor", "hookspecs", "testing", "types"}
GROUPS = {group.rpartition(".")[2] for group in (*plugins.GROUPS.values(), COMMANDS)}
FILES = {"json"}
"""What makes `rlprof.x` the name of a file."""
DOTTED = sorted({
    name
    for text in (*PAGES.values(), rlprof.__doc__, hookspecs.__doc__)
    for name in re.findall(
        r"(?<![\w./\"-])(?<!from )(?<!-m )rlprof(?:\.[A-Za-z_]\w*)+(?![\w/-])", text
    )
    if name.split(".")[1] not in {*GROUPS, *FILES}
})  # fmt: skip
"""What the pages write as `rlprof.x` or `rlprof.x.y`, but for what they import or run."""


def test_a_name_that_is_none_is_an_error():
    """Names that are imported late fail, and are listed, as others are."""
    with pytest.raises(AttributeError, match="module 'rlprof' has no attribute 'nope'"):
        _ = rlprof.nope
    assert set(dir(rlprof)) >= ROOMS


@pytest.mark.slow
def test_every_dotted_name_is_there_after_one_import():
    """What a page writes can be typed after `import rlprof`, each in an interpreter of its own."""
    program = (
        "import os, sys, rlprof\n"
        "for name in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"  # so that no name finds what another has imported
        "        eval(name)\n"
        "        print(name, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, *DOTTED], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == DOTTED
    assert {"rlprof.hookspecs.Recorder", "rlprof.doctor.findings", "rlprof.testing"} <= set(DOTTED)


def test_no_method_of_a_session_is_invented():
    """Whatever a page calls on `prof` can be called."""
    for path, text in PAGES.items():
        for name in re.findall(r"\bprof\.(\w+)", text):
            assert name in METHODS, f"{path}: prof.{name}"


# The generated pages of the reference


SPEC = importlib.util.spec_from_file_location("reference", ROOT / "docs/site/reference.py")
REFERENCE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(REFERENCE)
REFERENCE_OF_COMMANDS, API = REFERENCE.commands(), REFERENCE.api()
PARSERS = command_line().parse_args([]).parsers


def test_every_installed_command_has_a_section():
    """The page of commands has ours and those that other distributions offer."""
    assert set(sections(REFERENCE_OF_COMMANDS)) == {f"`rlprof {name}`" for name in PARSERS}
    assert {entry.name for entry in commands()} <= set(PARSERS)


def test_every_argument_is_listed_with_its_help():
    """Each argument has a row, with what `--help` says of it."""
    for name, parser in PARSERS.items():
        actions = [one for one in parser._actions if one.dest not in REFERENCE.SHARED]
        text = section(REFERENCE_OF_COMMANDS, f"`rlprof {name}`")
        rows = re.findall(r"^\| `.+?` \| (.+) \|$", text, re.MULTILINE)

        assert (len(rows), all(rows)) == (len(actions), True), name


def test_every_command_is_in_the_page_of_the_command_line():
    """docs/commands.md names each command once for what it is for."""
    assert [name for name in PARSERS if f"`rlprof {name}" not in PAGES["docs/commands.md"]] == []


def test_every_public_name_has_an_entry():
    """The page of names has each name of `rlprof`."""
    entries = {entry.rpartition(".")[2] for entry in re.findall(r"^::: (.*)$", API, re.MULTILINE)}
    names = {*rlprof.__all__} - ROOMS

    assert {getattr(getattr(rlprof, name), "__name__", name) for name in names} <= entries
