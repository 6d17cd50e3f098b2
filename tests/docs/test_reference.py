"""The generated pages of the reference have every name, hook, command and argument there is."""

from __future__ import annotations

import importlib.util
import re

import pytest

import rlprof
from rlprof_cli import command_line
from rlprof_cli.offers import commands
from tests.docs.pages import PAGES, ROOT, section, sections

SPEC = importlib.util.spec_from_file_location("reference", ROOT / "docs/site/reference.py")
REFERENCE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(REFERENCE)
COMMANDS = REFERENCE.commands()
PARSERS = command_line().parse_args([]).parsers
MODULES = {"control", "doctor", "hookspecs", "testing", "types"}


def test_every_installed_command_has_a_section():
    """The page of commands has ours and those that other distributions offer."""
    assert set(sections(COMMANDS)) == {f"`rlprof {name}`" for name in PARSERS}
    assert {entry.name for entry in commands()} <= set(PARSERS)


@pytest.mark.parametrize("name", PARSERS)
def test_every_argument_is_listed_with_its_help(name):
    """Each argument has a row, with what `--help` says of it."""
    actions = [one for one in PARSERS[name]._actions if one.dest not in REFERENCE.SHARED]

    rows = re.findall(r"^\| `.+?` \| (.+) \|$", section(COMMANDS, f"`rlprof {name}`"), re.MULTILINE)

    assert len(rows) == len(actions)
    assert all(rows)


@pytest.mark.parametrize("name", PARSERS)
def test_every_command_is_in_the_page_of_the_command_line(name):
    """docs/commands.md names each command once for what it is for."""
    assert f"`rlprof {name}" in PAGES["docs/commands.md"]


@pytest.mark.parametrize("name", sorted({*rlprof.__all__} - MODULES))
def test_every_public_name_has_an_entry(name):
    """The page of names has each name of `rlprof`."""
    one = getattr(rlprof, name)
    place = getattr(one, "__name__", name)

    assert re.search(rf"^::: rlprof[\w.]*\.{place}$", REFERENCE.api(), re.MULTILINE)
