"""The generated pages of the reference have every name, hook, command and argument there is."""

from __future__ import annotations

import importlib.util
import inspect
import re

import pytest

import rlprof
from rlprof import hookspecs, listenerspecs
from rlprof_cli import command_line, main
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
def test_every_command_explains_itself(name, capsys):
    """`rlprof COMMAND --help` says in sentences what the command does."""
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])

    assert exit_.value.code == 0
    assert len(capsys.readouterr().out.split()) > 40


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


@pytest.mark.parametrize(
    "spec",
    [hookspecs.Recorder, hookspecs.Exporter, listenerspecs.Listener],
    ids=lambda it: it.__name__,
)
def test_every_hook_has_words(spec):
    """The page of hooks prints docstrings, and each hook has one."""
    found = [one for name, one in vars(spec).items() if inspect.isfunction(one)]

    assert f"::: {spec.__module__}.{spec.__name__}\n" in REFERENCE.hooks()
    assert all(one.__doc__ for one in found)
