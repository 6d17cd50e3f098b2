"""What became of SGLang's profiling from release to release, for tests to ask."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TypeVar

import pytest

from tests.sglang_adapter.signatures import kept

T = TypeVar("T")

SAID = kept()
"""Release → what was read in its wheel."""

KEYWORDS = {
    **dict.fromkeys(("output_dir", "num_steps", "activities", "with_stack", "record_shapes",
                     "profile_by_stage", "start_step", "merge_profiles", "profile_prefix",
                     "profile_stages", "profile_id"), (0, 5, 18)),
    "detailed_annotations": (0, 5, 19),
}  # fmt: skip
"""What a caller can say of a session → the first release that hears it."""


def number(release: str) -> tuple[int, ...]:
    """Return the number of a release: `sglang==0.5.3.post2` is (0, 5, 3, 2)."""
    return tuple(int(word) for word in re.findall(r"\d+", release.partition("==")[2]))


RELEASES = sorted(SAID, key=number)
every_release = pytest.mark.parametrize("release", RELEASES)


def at(release: str, since: Mapping[tuple[int, ...], T]) -> T:
    """Return what holds for *release*, of what has held since a release each."""
    return since[max(first for first in since if first <= number(release))]


def known_by(release: str, since: Mapping[str, tuple[int, ...]]) -> set[str]:
    """Return what *release* knows, of what there is since a release each."""
    return {name for name, first in since.items() if number(release) >= first}


def parameters(text: str) -> list[str]:
    """Name the parameters of a signature, without `self`."""
    function = ast.parse(f"{text}: ...").body[0].args
    names = [one.arg for one in (*function.posonlyargs, *function.args, *function.kwonlyargs)]
    return names[1:]
