"""README.md and CHANGELOG.md: short, and true of what is in this repository."""

from __future__ import annotations

import re
from importlib import metadata

from tests.docs.pages import PAGES, ROOT, blocks

README = PAGES["README.md"]
CHANGELOG = PAGES["CHANGELOG.md"]


def test_the_plugin_table_is_what_is_here():
    """The README lists exactly the plugins of this repository."""
    rows = re.findall(
        r"^\|.*?\| (tool|engine|exporter) \| (`.*?`) \| `([\w-]+)` \|", README, re.MULTILINE
    )
    listed = {
        (kind, name, dist) for kind, names, dist in rows for name in re.findall(r"\w+", names)
    }
    offered = {
        (kind, entry.name, entry.dist.metadata["Name"])
        for kind in ("tool", "engine", "exporter")
        for entry in metadata.entry_points(group=f"rlprof.{kind}s")
    }

    assert listed == offered


def test_the_readme_is_short():
    """It is read in two minutes; its program has at most twenty lines."""
    (program,) = blocks(README, "python")

    assert len(README.splitlines()) <= 120
    assert len(program.text.splitlines()) <= 20


def test_every_change_has_a_kind_that_a_release_knows():
    """A file of changes/ is in one of the sections of the changelog, and says something."""
    kinds = re.findall(r'directory = "(\w+)", name', (ROOT / "pyproject.toml").read_text())

    assert len(kinds) == 5
    for file in (ROOT / "changes").glob("*"):
        if file.name != "README.md":
            assert re.fullmatch(rf"\w+\.({'|'.join(kinds)})\.md", file.name), file.name
            assert file.read_text().strip().endswith(".")
