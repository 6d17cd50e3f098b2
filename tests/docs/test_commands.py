"""docs/commands.md says of each command exactly what its parser knows."""

from __future__ import annotations

import argparse
import re

import pytest

import rlprof_cli as cli
from rlprof_cli import main
from rlprof_ray import _command as collect
from rlprof_ray.attaching import command as attach
from rlprof_report.commands import diff, top, why
from rlprof_timeline import _view as view
from tests.docs.pages import PAGES, rows, section, sections

PAGE = PAGES["docs/commands.md"]
COMMANDS = {module.__name__.rpartition(".")[2]: module for module in cli.COMMANDS}
COMMANDS["collect"] = collect  # as rlprof-ray offers it
COMMANDS["attach"] = attach
COMMANDS["diff"] = diff  # as rlprof-report does
COMMANDS["top"] = top
COMMANDS["why"] = why
COMMANDS["view"] = view  # as rlprof-timeline does
NAMES = list(COMMANDS)


def parser_of(name):
    """Return the parser of one command."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    for module in COMMANDS.values():
        module.add(subparsers)
    return subparsers.choices[name]


def actions(name):
    """Return what a command can be given."""
    return [one for one in parser_of(name)._actions if one.dest != "help"]


def shown(action):
    """Say an argument as the page's tables do."""
    metavar = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    return " ".join([*action.option_strings[-1:], metavar]).strip()


def test_every_command_has_a_section():
    """The page has the commands there are, and no other."""
    assert set(sections(PAGE)) == {f"`rlprof {name}`" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_documented(name):
    """The section of a command lists all it can be given, as `--help` writes it."""
    documented = [row[0].strip("`") for row in rows(section(PAGE, f"`rlprof {name}`"))]

    expected = [shown(action) for action in actions(name)]

    assert sorted(expected) == sorted(documented)


@pytest.mark.parametrize("name", NAMES)
def test_every_default_is_documented(name):
    """What a command takes if it is not told stands in the row of the option."""
    found = {row[0].strip("`"): row[1] for row in rows(section(PAGE, f"`rlprof {name}`"))}

    for action in actions(name):
        if action.default not in (None, False, [], 0):
            default = f"{action.default:g}" if type(action.default) is float else action.default
            assert re.search(rf"\(`?{re.escape(str(default))}`?[^)]*\)", found[shown(action)]), (
                action.dest
            )


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_is_documented(name):
    """The words an argument may be are in its row."""
    found = {row[0].strip("`"): row[1] for row in rows(section(PAGE, f"`rlprof {name}`"))}

    for action in actions(name):
        for choice in action.choices or ():
            assert f"`{choice}`" in found[shown(action)]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(name, capsys):
    """`rlprof COMMAND --help` says in sentences what the command does."""
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])

    assert exit_.value.code == 0
    assert len(capsys.readouterr().out.split()) > 40
