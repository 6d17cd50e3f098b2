"""docs/failures.md and the tests say the same: each row has its tests, each test its row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _rows():
    """Return the rows of the last table of the page, cell by cell."""
    page = (ROOT / "docs/failures.md").read_text()
    lines = [line for line in page.rpartition("|---|")[2].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def _heads(row):
    """Whether *row* is the heading of those below it."""
    return row[0].startswith("**") and not any(row[1:])


def _tests(file):
    """Return the tests that *file* defines, also in classes."""
    tree = ast.parse(file.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if node.name.startswith("test_")}


FAULTS = [row for row in _rows() if not _heads(row)]


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row[0][:60])
def test_a_fault_in_the_docs_is_held_by_tests_that_exist(row):
    """Every cell of its row says something, and the last one names tests by file and function."""
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row[-1])

    assert all(row)
    assert len(row) == 5
    assert ", ".join(f"`{file}::{test}`" for file, test in named) == row[-1]
    for file, test in named:
        assert test in _tests(ROOT / file if "/" in file else HERE / file)


def test_every_test_of_a_fault_stands_in_the_docs():
    """No fault is tried here that the page does not tell of."""
    told = {name for row in FAULTS for name in re.findall(r"`(\w+\.py::\w+)`", row[-1])}

    tried = {
        f"{file.name}::{test}"
        for file in HERE.glob("test_*.py")
        if file != Path(__file__)
        for test in _tests(file)
    }
    assert tried == told
