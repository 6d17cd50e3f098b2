"""The pages of the documentation, taken apart: blocks of code, tables, headings, links.

A comment above a block says what it is: `<!-- file: train.py -->` is written to that file and used
by the commands of its page, `<!-- quoted: PATH -->` stands in that file to the letter,
`<!-- runs: TEXT -->` is a whole program that prints TEXT.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for place in ("*.md", "docs/*.md", "core/*.md", "plugins/*/*.md", "examples/*/*.md")
    for path in sorted(ROOT.glob(place))
}
_BLOCK = re.compile(
    r"(?:^<!-- (file|quoted|runs): (.+?) -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A block of code and the comment above it."""

    mark: str
    said: str
    language: str
    text: str


def blocks(text, *languages, mark=None):
    """Return the blocks in these languages (all), with this mark (any), in order."""
    found = [Block(*groups) for groups in _BLOCK.findall(text)]
    return [
        block
        for block in found
        if (not languages or block.language in languages) and mark in (None, block.mark)
    ]


def section(text, heading):
    """Return the text below a heading, up to the next heading of its level or a higher one."""
    found = re.compile(rf"^(#+) {re.escape(heading)}\n", re.MULTILINE)
    _, level, below = found.split(text, maxsplit=1)
    return re.split(rf"^#{{1,{len(level)}}} ", below, flags=re.MULTILINE)[0]


def sections(text):
    """Return the sections of the second level, by heading."""
    return {
        head: section(text, head) for head in re.findall(r"^## (.*)$", prose(text), re.MULTILINE)
    }


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


def words(text):
    return re.findall(r"`([A-Za-z_][\w.]*)`", text)


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]


def links(text):
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?<!\[)`[^`\n]*`", "", prose(text)))


def prose(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
