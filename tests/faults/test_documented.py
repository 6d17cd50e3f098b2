"""docs/failures.md and the tests say the same: each row has its tests, each test its row."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


FLEET = ROOT / "tests/ray_fleet"
VLLM = ROOT / "tests/vllm_adapter"
SGLANG = ROOT / "tests/sglang_adapter"
FILES = {
    "The table": [file for file in HERE.glob("test_*.py") if file != Path(__file__)],
    "The fleet": [
        FLEET / f"test_{name}.py"
        for name in (
            "clocks", "driver_ends", "faults", "full_disks", "meetings", "strict",
            "verl_scenarios",
        )
    ],
    "Engines on vLLM": [VLLM / "test_failures.py", VLLM / "test_server_refusals.py"],
    "Engines on SGLang": [
        SGLANG / name for name in ("test_failures.py", "test_server.py", "test_guard.py")
    ],
    "The tool nsys": [ROOT / "tests/nsys_real/test_faults.py"],
    "The tool npu": [
        ROOT / name for name in ("tests/npu/test_failures.py", "tests/npu_real/test_faults.py")
    ],
    "Traces on the timeline": [
        ROOT / "tests/timeline" / name for name in ("test_damaged.py", "test_hostile.py")
    ],
    "The export and the machine": [ROOT / "tests/timeline/test_machine.py"],
}  # fmt: skip
"""The tables of the page, by their headings, and the files all of whose tests they name."""


def _rows(heading):
    """Return the rows of the table below *heading*, cell by cell."""
    page = (ROOT / "docs/failures.md").read_text()
    below = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in below.rpartition("|---|")[2].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def _heads(row):
    """Whether *row* is the heading of those below it."""
    return row[0].startswith("**") and not any(row[1:])


@cache
def _tests(file):
    """Return the tests that *file* defines, also in classes."""
    tree = ast.parse(file.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if node.name.startswith("test_")}


FAULTS = [(heading, row) for heading in FILES for row in _rows(heading) if not _heads(row)]


@pytest.mark.parametrize(("heading", "row"), FAULTS, ids=[row[0][:60] for _, row in FAULTS])
def test_a_fault_in_the_docs_is_held_by_tests_that_exist(heading, row):
    """Every cell of its row says something, and the last one names tests by file and function."""
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row[-1])
    home = FILES[heading][0].parent

    assert all(row)
    assert len(row) == 5
    assert ", ".join(f"`{file}::{test}`" for file, test in named) == row[-1]
    for file, test in named:
        assert test in _tests(ROOT / file if "/" in file else home / file)


@pytest.mark.parametrize("heading", FILES)
def test_every_test_of_a_fault_stands_in_the_docs(heading):
    """No fault is tried in these files that the page does not tell of."""
    rows = [row for other, row in FAULTS if other == heading]
    told = {name for row in rows for name in re.findall(r"`([\w/]+\.py::\w+)`", row[-1])}
    home = FILES[heading][0].parent
    files = {
        file.name if file.parent == home else str(file.relative_to(ROOT)): file
        for file in FILES[heading]
    }
    names = set(files)

    tried = {f"{name}::{test}" for name, file in files.items() for test in _tests(file)}
    assert tried == {name for name in told if name.partition("::")[0] in names}
    assert {name.partition("::")[0] for name in told} >= names
