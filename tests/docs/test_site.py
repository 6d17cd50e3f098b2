"""The site has every page, and its pictures are there and say what they show."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.docs.pages import PAGES, ROOT, blocks

PICTURES = ROOT / "docs/pictures"
MOST_BYTES = 150_000
SLOW = PAGES["docs/slow-step.md"]
SHOWN = [
    pytest.param(path, source, id=f"{path}: {source}")
    for path, text in PAGES.items()
    for source in re.findall(r'(?:src|srcset)="([^"]+)"', text)
]


def named(part):
    """Return every path below a part of the navigation."""
    if isinstance(part, str):
        return [part]
    return [
        path for one in (part.values() if isinstance(part, dict) else part) for path in named(one)
    ]


def test_every_page_is_in_the_navigation_of_the_site_once():
    """A reader of the site finds each page of the checkout, and no entry leads nowhere."""
    nav = named(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    made = {"docs/reference/api.md", "docs/reference/commands.md", "docs/reference/hooks.md"}

    assert sorted({*PAGES, *made}) == sorted(nav)


@pytest.mark.parametrize(("path", "source"), SHOWN)
def test_a_picture_is_there_and_is_small(path, source):
    """What a page shows lies in the checkout, and does not slow the page down."""
    file = (ROOT / path).parent / source

    assert file.parent.resolve() == PICTURES
    assert 0 < file.stat().st_size <= MOST_BYTES


def test_every_picture_is_shown():
    """Nothing lies in docs/pictures that no page shows."""
    used = {source.values[1].rpartition("/")[2] for source in SHOWN}
    used |= {name for text in PAGES.values() for name in re.findall(r"pictures/(\w+\.svg)\)", text)}

    assert used == {file.name for file in PICTURES.iterdir() if file.suffix != ".txt"}


def test_the_page_about_slow_steps_quotes_what_the_command_printed():
    """Below each picture stands the finding that `rlprof why` printed of the same run."""
    findings = [block.text for block in blocks(SLOW, "text") if block.text.startswith("1. ")]
    names = re.findall(r'src="pictures/([\w-]+)-light\.png"', SLOW)

    assert len(findings) == len(names) == 5
    for name, finding in zip(names, findings, strict=True):
        assert finding in (PICTURES / f"{name}.txt").read_text()
