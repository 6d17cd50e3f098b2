"""docs/writing-a-plugin.md and docs/hooks.md: what they name is what there is.

That their code runs, and that what they quote stands there, is tested for every page in tests/docs.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import attrs
import pytest

from rlprof import hookspecs
from rlprof.config import Limits
from rlprof.testing import EngineTests, ToolTests
from rlprof.types import Recording
from rlprof_cli import contract
from rlprof_run import CaptureResult, Process, Run, Span

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/writing-a-plugin.md").read_text()
HOOKS = (ROOT / "docs/hooks.md").read_text()
DECLARED = re.findall(r"^`(\w+)`$", inspect.getdoc(hookspecs.Recorder), re.MULTILINE)


@pytest.mark.parametrize("kind", ["tool", "engine", "exporter"])
def test_every_hook_and_its_arguments_are_drawn(kind):
    """The section of each kind in docs/hooks.md draws its hooks with all that they are given."""
    (picture,) = re.findall(rf"\n## An? {kind}\n(?:(?!\n## ).)*?```\n(.*?)```", HOOKS, re.DOTALL)

    for hook, arguments in contract.arguments(kind).items():
        assert f"{hook}(" in picture, f"{kind}: {hook} is not drawn"
        for argument in arguments:
            assert re.search(rf"\b{argument}\b", picture), f"{kind}: {hook} without {argument}"
        for drawn in re.findall(rf"\b{hook}\(([^)\n…]*)\)", picture):  # where it fits on a line
            assert arguments == [argument.partition("=")[0] for argument in drawn.split(", ")]


def test_every_attribute_and_member_is_documented():
    """What a class may declare, and what core looks for in a recording, has a row in the guide."""
    members = [name for name in vars(Recording) if not name.startswith("_")]

    for name in (*DECLARED, *members):
        assert re.search(rf"^\| `{name}(\(.*?\))?` \|", GUIDE, re.MULTILINE), name


def test_every_deadline_is_drawn_as_it_is():
    """docs/hooks.md names each limit, and its default in seconds."""
    for name, seconds in attrs.asdict(Limits()).items():
        if name.endswith("_s"):
            assert name in HOOKS
            assert f"{seconds:g} s" in HOOKS


def test_what_the_kit_lets_declare_is_documented():
    """Every attribute an author sets on the test class is in the guide."""
    names = {"plugin", "options", "produces", "works_here", "heavy", "name"}

    for name in names:
        assert hasattr(ToolTests, name) or name == "plugin"
        assert f"| `{name}` |" in GUIDE
    for name in ("engine", "work", "kill", "loop", "cannot_be_killed"):
        assert hasattr(EngineTests, name)
        assert name in GUIDE


def test_what_the_guide_says_of_a_run_is_there():
    """The attributes of a run, a capture, a process and a span that are named exist."""
    (table,) = re.findall(r"\| of the run \| is \|\n(.*?)\n\n", GUIDE, re.DOTALL)
    classes = (Run, CaptureResult, Process, Span)
    known = {name for cls in classes for name in (*dir(cls), *attrs.fields_dict(cls))}

    named = set(re.findall(r"`(\w+)", table))

    assert named <= known
    assert {"captures", "processes", "spans", "problems"} <= named
