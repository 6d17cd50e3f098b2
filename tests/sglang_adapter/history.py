"""What became of SGLang's profiling from release to release, for tests to ask."""

from __future__ import annotations

import ast
import re

from tests.sglang_adapter.signatures import kept

SAID = kept()
"""Release → what was read in its wheel."""


def number(release: str) -> tuple[int, ...]:
    """Return the number of a release: `sglang==0.5.3.post2` is (0, 5, 3, 2)."""
    return tuple(int(word) for word in re.findall(r"\d+", release.partition("==")[2]))


RELEASES = sorted(SAID, key=number)


def parameters(text: str) -> list[str]:
    """Name the parameters of a signature, without `self`."""
    function = ast.parse(f"{text}: ...").body[0].args
    names = [one.arg for one in (*function.posonlyargs, *function.args, *function.kwonlyargs)]
    return names[1:]
