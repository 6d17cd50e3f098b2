"""The generated pages of the reference have every name, hook, command and argument there is."""

from __future__ import annotations

import importlib.util
import re

import rlprof
from rlprof_cli import command_line
from rlprof_cli.offers import commands
from tests.docs.pages import PAGES, ROOT, section, sections

SPEC = importlib.util.spec_from_file_location("reference", ROOT / "docs/site/reference.py")
REFERENCE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(REFERENCE)
COMMANDS, API = REFERENCE.commands(), REFERENCE.api()
PARSERS = command_line().parse_args([]).parsers
MODULES = {"control", "doctor", "hookspecs", "testing", "types"}


def test_every_installed_command_has_a_section():
    """The page of commands has ours and those that other distributions offer."""
    assert set(sections(COMMANDS)) == {f"`rlprof {name}`" for name in PARSERS}
    assert {entry.name for entry in commands()} <= set(PARSERS)


def test_every_argument_is_listed_with_its_help():
    """Each argument has a row, with what `--help` says of it."""
    for name, parser in PARSERS.items():
        actions = [one for one in parser._actions if one.dest not in REFERENCE.SHARED]
        text = section(COMMANDS, f"`rlprof {name}`")
        rows = re.findall(r"^\| `.+?` \| (.+) \|$", text, re.MULTILINE)

        assert (len(rows), all(rows)) == (len(actions), True), name


def test_every_command_is_in_the_page_of_the_command_line():
    """docs/commands.md names each command once for what it is for."""
    assert [name for name in PARSERS if f"`rlprof {name}" not in PAGES["docs/commands.md"]] == []


def test_every_public_name_has_an_entry():
    """The page of names has each name of `rlprof`."""
    entries = {entry.rpartition(".")[2] for entry in re.findall(r"^::: (.*)$", API, re.MULTILINE)}
    names = {*rlprof.__all__} - MODULES

    assert {getattr(getattr(rlprof, name), "__name__", name) for name in names} <= entries
