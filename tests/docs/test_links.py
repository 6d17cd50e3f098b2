"""Links between the pages lead somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, prose

LINKS = [
    pytest.param(path, target, id=f"{path}: {target}")
    for path, text in PAGES.items()
    for target in dict.fromkeys(links(text))
    if "://" not in target
]


@pytest.mark.parametrize(("path", "target"), LINKS)
def test_a_link_leads_to_a_file_and_a_heading(path, target):
    """Each relative link names what exists, and each anchor a heading of its page."""
    name, _, anchor = target.partition("#")
    file = (ROOT / path).parent / name if name else ROOT / path

    assert file.exists()
    if anchor:
        assert anchor in anchors(file.read_text())


@pytest.mark.parametrize("path", PAGES)
def test_files_that_are_named_exist(path):
    """A path of this repository in the prose of a page is one."""
    named = r"`((?:tests|bench|docs|envs|examples|plugins|core)/[\w./-]+)`"

    for name in re.findall(named, prose(PAGES[path])):
        assert (ROOT / name).exists(), name


def test_every_page_is_in_the_list_of_pages():
    """Who begins at docs/README.md finds each page, and each plugin's own."""
    listed = set(links(PAGES["docs/README.md"]))

    pages = {path.removeprefix("docs/") for path in PAGES if path.startswith("docs/")}
    plugins = {f"../{path}" for path in PAGES if path.startswith("plugins/")}
    assert (pages - {"README.md"}) | plugins <= listed
