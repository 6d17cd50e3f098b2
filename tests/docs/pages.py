"""The pages of the documentation, taken apart: blocks of code, tables, headings, links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for place in ("*.md", "docs/*.md", "core/*.md", "plugins/*/*.md", "examples/*/*.md")
    for path in ROOT.glob(place)
)
_BLOCK = re.compile(r"(?:^<!-- file: (.+?) -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def read(path):
    """Return the text of a page."""
    return (ROOT / path).read_text()


def blocks(text, *languages):
    """Return the blocks of code in these languages, in order."""
    return [body for _, language, body in _BLOCK.findall(text) if language in languages]


def parts(text):
    """Return every block in order: the file it is said to be (or ""), its language, its text."""
    return _BLOCK.findall(text)


def files(text):
    """Return the blocks that are said to be a file, by its name."""
    return {name: body for name, _, body in _BLOCK.findall(text) if name}


def section(text, heading):
    """Return what stands below a heading, up to the next of its level or a higher one."""
    found = re.compile(rf"^(#+) {re.escape(heading)}\n", re.MULTILINE)
    _, level, below = found.split(text, maxsplit=1)
    return re.split(rf"^#{{1,{len(level)}}} ", below, flags=re.MULTILINE)[0]


def rows(text):
    """Return the rows of every table in *text*, cell by cell, without heads and rulers."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        cells = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
            for line in table.splitlines()
        ]
        found += cells[2:]
    return found


def anchors(text):
    """Return what a link may point to within a page, as GitHub names headings."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]


def links(text):
    """Return the targets of all links in the prose of a page."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`(?!\]\()", "", prose))
