"""docs/api.md has every name, method, argument and field there is, and no other."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import metadata
from typing import get_args

import attrs
import pytest

import rlprof
from rlprof import hookspecs, plugins, types
from rlprof_cli.offers import COMMANDS
from rlprof_run import Answer, CaptureResult, Left, Process, Run, Skipped, Span
from tests.docs.pages import PAGES, rows, section, words

PAGE = PAGES["docs/api.md"]
TABLE = {row[0]: row[1] for row in rows(PAGE)}
METHODS = [name for name in dir(rlprof.Off) if not name.startswith("_")]
VALUES = [
    one for name in rlprof.__all__
    if attrs.has(one := getattr(rlprof, name)) and one is not rlprof.Run
]  # fmt: skip
OF_A_RUN = {
    "processes": Process,
    "captures": CaptureResult,
    "skipped": Skipped,
    "answers": Answer,
    "left": Left,
    "spans(problems=None)": Span,
}
ROOMS = {"control", "doctor", "hookspecs", "testing", "types"}
GROUPS = {
    group.rpartition(".")[2] for group in (*plugins.GROUPS.values(), COMMANDS)
}  # fmt: skip
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


def fields(cls):
    """Return the names of the fields and properties of a value."""
    properties = {name for name, one in vars(cls).items() if isinstance(one, property)}
    return {field.name for field in attrs.fields(cls)} | properties


def signature(function):
    """Write the parameters of *function* without types, as the page does."""
    kept = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    text = str(inspect.Signature(kept)).replace("'", '"')
    return text.replace("()", "") if text == "()" else text


@pytest.mark.parametrize("name", rlprof.__all__)
def test_every_public_name_is_documented(name):
    """Each name that `import rlprof` brings is on the page."""
    assert re.search(rf"\brlprof\.{name}\b", PAGE) or f"`{name}`" in PAGE


@pytest.mark.parametrize("name", rlprof.__all__)
def test_every_public_name_has_a_docstring(name):
    """What is on the page is there, and says what it is."""
    assert getattr(rlprof, name).__doc__


def test_a_name_that_is_none_is_an_error():
    """Names that are imported late fail as others do."""
    with pytest.raises(AttributeError, match="module 'rlprof' has no attribute 'nope'"):
        _ = rlprof.nope


@pytest.mark.parametrize("path", PAGES)
def test_no_name_is_invented(path):
    """What any page calls rlprof.something is there."""
    named = set(re.findall(r"(?<![\w./\"-])rlprof\.([A-Za-z_]+)\b", PAGES[path]))

    assert named <= {*rlprof.__all__, *ROOMS, *GROUPS, *FILES, "__version__", "cli", "rundir"}


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


@pytest.mark.slow
def test_a_module_is_imported_when_it_is_named():
    """`import rlprof` loads none of those that it serves."""
    program = (
        "import sys, rlprof\n"
        "rooms = [f'rlprof.{name}' for name in sys.argv[1:]]\n"
        "print(*(name in sys.modules for name in rooms))\n"
        "print(*(name in dir(rlprof) for name in sys.argv[1:]))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, *ROOMS], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["False"] * len(ROOMS) + ["True"] * len(ROOMS)


def test_the_version_is_that_of_the_distribution():
    """As other packages tell it."""
    assert metadata.version("rlprof-core") == rlprof.__version__


@pytest.mark.parametrize(
    "name", ["open", "launch", "annotate", "span", "trajectory", "read", "register", "safe_name"]
)
def test_every_call_is_documented_with_its_arguments(name):
    """The arguments and their defaults are those of the function."""
    function = getattr(rlprof, name)

    assert f"`rlprof.{name}{signature(function)}`" in PAGE


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_a_session_is_documented(name):
    """What a session can be told has a row, with its arguments, and Session and Off have it."""
    method = getattr(rlprof.Session, name, None)  # an instance has `run_dir`
    arguments = str(signature(method) or "()") if callable(method) else ""

    assert f"`prof.{name}{arguments}`" in TABLE
    assert hasattr(rlprof.Off, name)


def test_no_method_of_a_session_is_invented():
    """Whatever a page calls on `prof` can be called."""
    for path, text in PAGES.items():
        for name in re.findall(r"\bprof\.(\w+)", text):
            assert name in METHODS, f"{path}: prof.{name}"


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_every_field_of_a_value_is_documented(cls):
    """The row of each value has its fields and properties, and no other."""
    documented = set(words(TABLE[f"`rlprof.{cls.__name__}`"]))

    assert fields(cls) == documented - {"export"}


def test_every_member_of_a_recording_is_documented():
    """The row of Recording has what core looks for."""
    members = {name for name in vars(rlprof.Recording) if not name.startswith("_")}
    members |= set(rlprof.Recording.__annotations__)

    assert {*words(TABLE["`rlprof.Recording`"])} == {*members, "start"}


def test_every_field_of_a_run_is_documented():
    """The table of a run has all that one can be asked."""
    documented = {word for row in rows(section(PAGE, "A run as values")) for word in words(row[0])}
    documented = {word.partition("(")[0] for word in documented}
    known = {name for name in (*vars(Run), *fields(Run)) if not name.startswith("_")}

    assert known - {"spans", "only", "counters", "frame"} == documented
    assert {"`spans(problems=None)`", "`only(selection)`"} <= set(TABLE)


@pytest.mark.parametrize("name", OF_A_RUN)
def test_every_field_of_what_a_run_holds_is_documented(name):
    """Each process, capture, skipped window, answer and span says what is in its row."""
    documented = set(words(TABLE[f"`{name}`"]))

    assert documented == fields(OF_A_RUN[name])


@pytest.mark.parametrize("place", get_args(types.Place))
def test_both_places_of_configure_are_documented(place):
    """Where `configure` is called is said to who writes a plugin, and drawn."""
    for page in ("docs/hooks.md", "docs/writing-a-plugin.md"):
        assert f'place="{place}"' in PAGES[page]


@pytest.mark.parametrize("where", get_args(types.RunsOn))
def test_every_place_a_tool_runs_on_is_documented(where):
    """The values of `runs_on` are in the guide, and no other."""
    assert f'`"{where}"`' in PAGES["docs/writing-a-plugin.md"]


@pytest.mark.parametrize("kind", ["tool", "engine", "exporter"])
def test_every_kind_of_plugin_that_records_or_exports_has_a_kit(kind):
    """The page names the tests of the kit for each kind."""
    assert f"`{kind.capitalize()}Tests`" in PAGE
