"""verl's word for what to record is for SGLang's own profiler, and chooses it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlprof_sglang import SglangOptions
from rlprof_sglang._facts import Facts
from rlprof_sglang._ways import unasked, way

TORCH = {"torch": {}}


def engine(*, is_inside=True):
    """Return one, with or without rlprof in its schedulers."""
    return SimpleNamespace(facts=Facts("Engine", is_inside=is_inside))


@pytest.mark.parametrize(
    ("contents", "chosen"), [(None, "worker"), ((), "worker"), (("cpu", "stack"), "native")]
)
def test_contents_choose_the_profiler_they_are_for(contents, chosen):
    """Inside they would mean nothing; an empty list is verl's default, and asks for nothing."""
    assert way(SglangOptions(contents=contents), engine(), TORCH) == chosen


@pytest.mark.parametrize(
    ("asked", "is_inside", "is_said"),
    [({}, False, True), ({}, True, False), ({"way": "native"}, False, False)],
)
def test_sglangs_own_profiler_stands_for_the_tool_not_without_a_word(asked, is_inside, is_said):
    """Where the engine was launched without us, and nobody has asked for that profiler."""
    said = unasked(SglangOptions(**asked), engine(is_inside=is_inside), TORCH)

    assert [*said] == (["tool: torch"] if is_said else [])
    assert all("launch with the environment that rlprof.launch gives" in why
               for why in said.values())  # fmt: skip
