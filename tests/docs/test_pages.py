"""Links, lists, tables and messages of the docs agree with the repository."""

import ast
import re
from importlib import metadata

import yaml

from tests.docs.pages import PAGES, ROOT, anchors, blocks, links, prose

README = PAGES["README.md"]
PICTURES = ROOT / "docs/pictures"
SLOW = PAGES["docs/slow-step.md"]


def test_links_lead_to_files_and_headings_and_named_files_exist():
    """Relative links lead to files and headings, and paths in the prose exist."""
    named = r"`((?:tests|bench|docs|envs|examples|plugins|core)/[\w./-]+)`"
    wrong = []
    for path, text in PAGES.items():
        for target in {target for target in links(text) if "://" not in target}:
            name, _, anchor = target.partition("#")
            file = (ROOT / path).parent / name if name else ROOT / path
            if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
                wrong.append(f"{path}: {target}")
        names = re.findall(named, prose(text))
        wrong += [f"{path}: {name}" for name in names if not (ROOT / name).exists()]

    assert wrong == []


def test_every_page_is_in_the_list_of_pages_and_once_in_the_site():
    """docs/README.md lists every page, and the site's navigation has each exactly once."""
    listed = set(links(PAGES["docs/README.md"]))
    nav = named(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])

    pages = {path.removeprefix("docs/") for path in PAGES if path.startswith("docs/")}
    plugins = {f"../{path}" for path in PAGES if path.startswith("plugins/")}
    assert (pages - {"README.md"}) | plugins <= listed
    made = {"docs/reference/api.md", "docs/reference/commands.md", "docs/reference/hooks.md"}
    assert sorted({*PAGES, *made}) == sorted(nav)


def test_the_plugin_table_lists_the_plugins_of_the_repository():
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


def test_every_change_has_a_kind_that_a_release_knows():
    """Every file of changes/ has a known kind and ends with a full sentence."""
    kinds = re.findall(r'directory = "(\w+)", name', (ROOT / "pyproject.toml").read_text())

    assert len(kinds) == 5
    for file in (ROOT / "changes").glob("*"):
        if file.name != "README.md":
            assert re.fullmatch(rf"\w+\.({'|'.join(kinds)})\.md", file.name), file.name
            assert file.read_text().strip().endswith(".")


def named(part):
    """Return every path in a part of the navigation."""
    if isinstance(part, str):
        return [part]
    return [
        path for one in (part.values() if isinstance(part, dict) else part) for path in named(one)
    ]


def test_the_page_about_slow_steps_quotes_what_the_command_printed():
    """Each finding on the page about slow steps is in the stored output of `rlprof why`."""
    findings = [block.text for block in blocks(SLOW, "text") if block.text.startswith("1. ")]
    names = re.findall(r'src="pictures/([\w-]+)-light\.png"', SLOW)

    assert len(findings) == len(names) == 5
    for name, finding in zip(names, findings, strict=True):
        assert finding in (PICTURES / f"{name}.txt").read_text()


# docs/failures.md: a test covers each row, and each row quotes the message it explains


_ROW = re.compile(r'^\| <a id="([\w-]+)"></a>(.*?) \| ', re.MULTILINE)
ROWS = dict(_ROW.findall(PAGES["docs/failures.md"]))
SOURCES = [*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
FAULTS = [
    *sorted(ROOT.glob("tests/faults/test_*.py")),
    *(ROOT / "tests" / name for name in (
        "npu/test_failures.py", "npu_real/test_faults.py", "nsys_real/test_faults.py",
        "ray_fleet/test_driver_ends.py", "ray_fleet/test_faults.py", "ray_fleet/test_machines.py",
        "sglang_adapter/test_failures.py", "sglang_adapter/test_guard.py",
        "sglang_adapter/test_server.py",
        "timeline/test_damaged.py",
        "vllm_adapter/test_failures.py",
    )),
]  # fmt: skip
"""Files in which every test provokes a failure."""


def held(path):
    found = re.findall(r"# failures\.md: (.*)\n(?:.*\n)*?\s*def (test_\w+)", path.read_text())
    return {test: said.split(", ") for said, test in found}


def test_every_row_has_a_test_and_every_failure_test_a_row():
    """Each row of docs/failures.md has a test, and each test of a failure names a row."""
    tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/testing/src/**/*.py")]

    named = {row for path in tests for rows in held(path).values() for row in rows}

    assert named == set(ROWS)
    assert len(ROWS) > 80
    for path in FAULTS:
        names = re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE)

        assert set(names) == set(held(path)), path


def test_the_messages_on_the_page_are_those_of_the_source():
    """Every message quoted in docs/failures.md is in the source."""
    texts = []  # with a blank for each value that is filled in
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            if isinstance(node, ast.JoinedStr | ast.Constant):
                known = (getattr(part, "value", "") for part in parts)
                texts.append("".join(one if isinstance(one, str) else " " for one in known))
    source = "\n".join(texts)
    quotes = re.findall(r"`([^`\n]+)`", "\n".join(ROWS.values()))
    pieces = [piece.strip(" :,;") for quote in quotes for piece in quote.split("...")]

    assert [piece for piece in pieces if piece not in source] == []
