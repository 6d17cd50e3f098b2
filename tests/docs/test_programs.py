"""Every block of Python: it runs, or stands in the file it is quoted from."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.docs.pages import PAGES, ROOT, blocks
from tests.docs.shell import write

EXAMPLES = [str(path) for path in sorted((ROOT / "examples").glob("*/src"))]
QUOTED = [block for text in PAGES.values() for block in blocks(text, mark="quoted")]
RUNS = [
    pytest.param(block.said, block.text, id=f"{path}: {block.said}")
    for path, text in PAGES.items()
    for block in blocks(text, "python", mark="runs")
]
UNMARKED = [path for path, text in PAGES.items() if blocks(text, "python", mark="")]
ELSEWHERE = {
    "docs/doctor.md": "tests/doctor/test_documentation.py",
    "core/README.md": "below",
    "docs/loggers.md": "tests/loggers_real/test_recipes.py",
    "docs/sql.md": "tests/docs/test_sql.py",
    "examples/third_party_engine/README.md": "tests/kit/test_examples.py",
}
"""Pages whose programs have a test of their own."""


@pytest.fixture(name="run")
def _run(tmp_path, scratch):
    """Return a function that runs a program as a script that a reader has saved."""

    def run(program):
        (tmp_path / "program.py").write_text(program)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(EXAMPLES), "TMPDIR": str(scratch)}
        argv = [sys.executable, "-W", "error", "program.py"]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_what_is_quoted_stands_there():
    """Every quoted block is, to the letter, a part of the file it names."""
    for block in QUOTED:
        quoted = block.text.rstrip("\n")
        assert quoted in (ROOT / block.said).read_text(), f"quote {block.said} anew"


@pytest.mark.slow
@pytest.mark.parametrize(("said", "program"), RUNS)
def test_a_whole_program_prints_what_is_said(said, program, run):
    """Copied into a file and run, each does what its page says."""
    assert said in run(program)


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in UNMARKED if path not in ELSEWHERE])
def test_the_code_of_a_page_runs(path, run, tmp_path):
    """What a page shows piece by piece is one program, beside the files it shows."""
    for block in blocks(PAGES[path], mark="file"):
        write(tmp_path, block.said, block.text)

    run("\n".join(block.text for block in blocks(PAGES[path], "python", mark="")))


@pytest.mark.slow
def test_the_plugin_of_the_readme_of_core_works(run):
    """The class core/README.md shows records a window at the first try."""
    (block,) = blocks(PAGES["core/README.md"], "python")
    rest = """
with rlprof.open({"tool": "mine", "steps": [1], "roles": {"actor": {}}}) as prof:
    prof.step(1)
    with prof.phase("rollout"):
        pass
(capture,) = rlprof.read(prof.run_dir).captures
print(capture.state, (prof.run_dir / capture.artifacts[0].path).read_text())
"""

    printed = run(block.text + rest)

    assert printed.split() == ["whole", "1/rollout"]
