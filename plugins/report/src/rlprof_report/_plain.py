"""Names and numbers on one line of text, as the terminal and the page show them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Target

_SPACE = "\u00a0"


def plain(text: str, longest: int | None = None) -> str:
    """Keep any *text* on its line and within *longest* characters."""
    shown = "".join(c if c.isprintable() or c == _SPACE else ascii(c)[1:-1] for c in text)
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 1]}…"


def secs(seconds: float) -> str:
    """Write a time: `2.35 s`, and below a tenth of a second `35 ms`."""
    if abs(seconds) < 5e-6 or abs(seconds) >= 0.0995:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.2g} ms"


def whose(target: Target) -> str:
    """Name a process: `actor 5`, `rollout replica 1`."""
    if target.replica is None:
        return f"{target.role} {target.rank}"
    return f"{target.role} replica {target.replica}"


def listed(words: Sequence[str], most: int = 4) -> str:
    """Join the first *words*, and count the rest: `a and b`, `a, b and 3 more`."""
    more = len(words) - most
    words = [*words[:most], f"{more} more"] if more > 0 else words
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def argument(path: object) -> str:
    """Quote *path* for a shell and its program: a name that begins with `-` is not an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
