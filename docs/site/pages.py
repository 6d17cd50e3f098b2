"""The pages of the site, where they lie in the checkout: what MkDocs calls while it builds.

A page keeps its path, so that links between pages work on the site as they do in the checkout. A
link to code becomes its text, for the site has no code.
"""  # noqa: INP001 -- MkDocs loads the file by its path

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

sys.path.append(str(Path(__file__).parent))
from reference import pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "docs/*.md", "core/*.md", "plugins/*/*.md", "examples/*/*.md")
PICTURES = ("docs/pictures/*.png", "docs/pictures/*.svg")
ASSETS = ("iframe-worker.js", "site.css")
_FENCE = re.compile(r"^ *(```|~~~)")
_ITEM = re.compile(r"^ *([-*]|\d+\.) ")
_IN_TEXT = re.compile(r"(?! |[-*] |\d+\. )\S")
"""A line after which Python-Markdown takes an item for more of the paragraph."""
_LINK = re.compile(r"\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def anchor(heading: str, separator: str) -> str:
    """Return what a link names *heading* by, as GitHub does."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> None:
    """Name headings as GitHub does."""
    config.mdx_configs["toc"]["slugify"] = anchor


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the pages of the whole checkout, and of `docs` nothing that is none."""
    paths = [(path, path) for pattern in (*PAGES, *PICTURES) for path in sorted(ROOT.glob(pattern))]
    paths += [(Path(__file__).parent / name, ROOT / "assets" / name) for name in ASSETS]
    ours = [
        File.generated(config, str(place.relative_to(ROOT)), abs_src_path=str(path))
        for path, place in paths
    ]
    ours += [
        File.generated(config, f"docs/reference/{name}", content=text)
        for name, text in pages().items()
    ]
    return Files([*(one for one in files if one.src_dir != config.docs_dir), *ours])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write *markdown* so that Python-Markdown reads it as GitHub does."""
    del config
    if page.file.abs_src_path is None:  # of the reference
        return markdown
    here = Path(page.file.abs_src_path).parent
    lines: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and _ITEM.match(line) and lines and _IN_TEXT.match(lines[-1]):
            lines.append("")
        lines.append(line if fenced else _LINK.sub(lambda it: _link(it, here, files), line))
    return "\n".join(lines)


def _link(found: re.Match[str], here: Path, files: Files) -> str:
    """Return a link that the site has, or its text."""
    text, target, heading = found[1], found[2], found[3] or ""
    path = (here / target).resolve()
    if path.is_dir() and (path / "README.md").exists():
        return f"[{text}]({target.rstrip('/')}/README.md{heading})"
    if not path.is_relative_to(ROOT) or files.get_file_from_path(str(path.relative_to(ROOT))):
        return found[0]
    return text if path.exists() else found[0]
