"""docs/failures.md: tests hold each row, and each row quotes the message it explains.

A test names the rows it holds in a comment above it: `# failures.md:` and their anchors.
"""

from __future__ import annotations

import ast
import re

from tests.docs.pages import PAGES, ROOT

_ROW = re.compile(r'^\| <a id="([\w-]+)"></a>(.*?) \| ', re.MULTILINE)
ROWS = dict(_ROW.findall(PAGES["docs/failures.md"]))
SOURCES = [*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
FAULTS = [
    *sorted(ROOT.glob("tests/faults/test_*.py")),
    *(ROOT / "tests" / name for name in (
        "npu/test_failures.py", "npu_real/test_faults.py", "nsys_real/test_faults.py",
        "ray_fleet/test_clocks.py", "ray_fleet/test_driver_ends.py", "ray_fleet/test_faults.py",
        "ray_fleet/test_full_disks.py", "ray_fleet/test_meetings.py",
        "sglang_adapter/test_failures.py",
        "sglang_adapter/test_guard.py", "sglang_adapter/test_server.py",
        "timeline/test_damaged.py", "timeline/test_machine.py",
        "vllm_adapter/test_failures.py", "vllm_adapter/test_server_refusals.py",
    )),
]  # fmt: skip
"""Files in which every test provokes a failure."""


def held(path):
    """Return the rows that each test of a file names."""
    found = re.findall(r"# failures\.md: (.*)\n(?:.*\n)*?\s*def (test_\w+)", path.read_text())
    return {test: said.split(", ") for said, test in found}


def messages():
    """Return all texts of the source, with a blank in place of what is filled in."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(getattr(part, "value", " ") if isinstance(part, ast.Constant) else " "
                              for part in node.values)  # fmt: skip
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_row_is_held_by_a_test():
    """Each row is named by some test, and no test names a row that is not on the page."""
    tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/testing/src/**/*.py")]

    named = {row for path in tests for rows in held(path).values() for row in rows}

    assert named == set(ROWS)
    assert len(ROWS) > 80


def test_every_failure_that_is_provoked_has_a_row():
    """Each test of a file of failures names the row that explains what it provokes."""
    for path in FAULTS:
        names = re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE)

        assert set(names) == set(held(path)), path


def test_the_messages_on_the_page_are_those_of_the_source():
    """A reader who searches the page for the words of a message finds them."""
    source = "\n".join(messages())
    quotes = re.findall(r"`([^`\n]+)`", "\n".join(ROWS.values()))
    pieces = [piece.strip(" :,;") for quote in quotes for piece in quote.split("...")]

    assert [piece for piece in pieces if piece not in source] == []
