"""Find sentences that a reader has to read twice: `python docs/english.py`.

CONTRIBUTING.md has the rules and pairs. This finds our habits; in pages, long sentences, too.
"""  # noqa: INP001 -- a script, run by `make lint`

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/*.md", "core/*.md", "plugins/*/*.md", "examples/*/*.md", ".github/*.md")
CODE = ("core/**/*.py", "plugins/**/*.py", "bench/*.py", "examples/**/*.py", "tests/**/*.py")
LONGEST = 28
"""Words of a sentence; 20 is the rule, and a list of names may need more."""
HABITS = {
    r"\bbeside\b": "next to, besides, with",
    r"\bso long\b": "while, for up to",
    r"\bthat one\b": "name it",
    r"\bmended\b": "fixed",
    r"\b(?:is|are|was|were|be|been) told\b": "say who tells, or: is reported",
    r"(?:^|[.:;] )(?:Who|Whoever|Whatever)\b[^?]*$": "start with a noun, or with you",
    r"\bof (?:its|their|your|our) own\b(?= accord)": "by itself",
    r"\bis said to be\b": "say who says it",
    r"\bso and so\b": "name it",
    r"\b(?:for|of) who\b": "for readers who, for users who",
}
_PLAIN = (
    (re.compile(r"^```.*?^```$|<!--.*?-->|<picture>.*?</picture>", re.DOTALL | re.MULTILINE), ""),
    (re.compile(r"!?\[((?:`[^`]*`|[^\]`])*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`[^`]*`"), "Code"),
    (re.compile(r'"[^"]*"'), "Quoted"),
)
_QUOTES = "| not | but |"
"""The head of the table of pairs, whose left column is what not to write."""


def pieces(text: str) -> Iterator[str]:
    """Give the sentences of a page: of its paragraphs, items and cells."""
    for pattern, stands in _PLAIN:
        text = pattern.sub(stands, text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) )", text):
        if _QUOTES in block or block.lstrip().startswith("#"):
            continue
        for cell in block.split(" | ") if block.lstrip().startswith("|") else [block]:
            line = " ".join(cell.strip(" |-*\n").split())
            yield from re.split(r"(?<=[.!?])\s+(?=[A-Z(*`])", line)


def faults(text: str) -> Iterator[str]:
    """Say what is wrong with the sentences of a page."""
    if _QUOTES in text:
        text = text[: text.index(_QUOTES)]
    for piece in pieces(text):
        longest = max((len(part.split()) for part in re.split(r"[:;] ", piece)), default=0)
        if longest > LONGEST:
            yield f"{longest} words, at most {LONGEST}: {piece[:70]}..."
        yield from habits(piece)


def habits(piece: str) -> Iterator[str]:
    """Say which of our habits a sentence has."""
    for habit, instead in HABITS.items():
        found = re.search(habit, piece)
        if found:
            yield f"{found[0][:40]!r} ({instead}): {piece[:70]}"


def in_code(text: str) -> Iterator[str]:
    """Say what is wrong with the docstrings of a module, those of its attributes too."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield from (fault for piece in pieces(docstring) for fault in habits(piece))


def main() -> int:
    """Print each fault with its page; return 1 if there is any."""
    found = 0
    for path in (path for pattern in PAGES + CODE for path in sorted(ROOT.glob(pattern))):
        text = path.read_text()
        for fault in in_code(text) if path.suffix == ".py" else faults(text):
            found += 1
            print(f"{path.relative_to(ROOT)}: {fault}")
    print(f"english: {found} faults" if found else "english: no fault found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
