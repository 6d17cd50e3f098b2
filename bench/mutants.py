"""Whether the tests notice a wrong operator in a plugin: flip some, one at a time, and run them.

`.envs/test/bin/python bench/mutants.py [--count 60] [--seed 1] [--only NAME,…]`: the tests of each
plugin run once under coverage, those of the fleet with the processes that they start. Of the
operators on the lines that they reach, *count* are drawn at random, over all plugins alike. Each is
flipped in a copy of the checkout, and the tests of its plugin run until the first failure, the fast
ones first. A mutant that fails no test is printed with its line: it is a gap in the tests, or
changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path

import attrs
from _measure import machine, verdict

ROOT = Path(__file__).parent.parent
TESTS = {
    "torch_profiler": ["tests/torch_profiler"],
    "nsys": ["tests/nsys"],
    "npu": ["tests/npu"],
    "vllm_adapter": ["tests/vllm_adapter", "tests/engine_parts"],
    "sglang_adapter": ["tests/sglang_adapter", "tests/engine_parts"],
    "engine_parts": ["tests/engine_parts", "tests/vllm_adapter", "tests/sglang_adapter"],
    "ray_fleet": ["tests/ray_fleet", "tests/frameworks"],
    "timeline": ["tests/timeline"],
}
LEAST = 57 / 60
_TIMEOUT_S = 600
_MARKS = "not slow", "slow"
_NO_TESTS = 5
_times = count(1)
_COVERED = """
import os
if "COVERAGE_PROCESS_CONFIG" in os.environ:  # set by `patch = subprocess`
    import threading, time
    import coverage
    seen = coverage.process_startup()
    def save():
        while True:  # Ray kills its workers, so that nothing runs at their end
            time.sleep(1)
            seen.save()
    threading.Thread(target=save, daemon=True).start()
"""
"""A `sitecustomize`: much of the fleet runs in Ray's workers and in drivers of their own."""
_FLIPS: dict[type[ast.AST], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.And: "or",
    ast.Or: "and", ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*",
}  # fmt: skip


@attrs.frozen
class Mutant:
    """One operator of a file, and what stands in its place."""

    plugin: str
    file: str
    line: int
    start: int
    end: int
    """Bytes between the operands."""
    flipped: str


def main() -> int:
    """Draw, flip, run, and name the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(TESTS))
    asked = parser.parse_args()
    print(f"mutants of plugins: {machine()}; seed {asked.seed}")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "rlprof")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".envs", "__pycache__"))
        (copy / ".envs").symlink_to(ROOT / ".envs")
        drawn = [one for name in asked.only.split(",") for one in _reached(copy, name)]
        if not drawn:
            raise SystemExit("mutants: the tests reach no operator, so nothing is measured")
        draw = random.Random(asked.seed)  # noqa: S311 -- the same ones for the same seed
        chosen = draw.sample(drawn, min(asked.count, len(drawn)))
        survivors = []
        for number, one in enumerate(chosen, 1):
            survivors += [one] if _survives(copy, one) else []
            print(f"  tried {number} of {len(chosen)}", file=sys.stderr, flush=True)
    print(f"  drawn from {len(drawn)}: {dict(Counter(one.plugin for one in chosen))}")
    killed = len(chosen) - len(survivors)
    least = LEAST * len(chosen)
    return 0 if verdict(f"survivors of {len(chosen)} ({killed} killed)",
                        len(survivors), len(chosen) - least, "") else 1  # fmt: skip


def _reached(copy: Path, plugin: str) -> list[Mutant]:
    """List the operators on lines of *plugin* that its tests reach."""
    import coverage

    source, data = copy / "plugins" / plugin / "src", copy / ".covered" / plugin
    data.mkdir(parents=True)
    config = data / "coveragerc"
    patch = "subprocess" if plugin == "ray_fleet" else ""  # others test what processes import
    config.write_text(
        f"[run]\nsource = {source}\ndata_file = {data / 'seen'}\nparallel = true\npatch = {patch}\n"
    )
    (data / "sitecustomize.py").write_text(_COVERED)
    _test(copy, plugin, cover=config)
    seen = coverage.Coverage(config_file=str(config))
    seen.combine()
    found = []
    for file in sorted(source.rglob("*.py")):
        lines = set(seen.get_data().lines(str(file)) or ())
        found += [one for one in _operators(plugin, file) if one.line in lines]
    print(f"  {plugin}: {len(found)} operators on lines that its tests reach", flush=True)
    return found


def _operators(plugin: str, file: Path) -> list[Mutant]:
    """List the operators of *file* that can be flipped."""
    text = file.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(node: ast.expr, *, end: bool) -> int:
        if end:
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            return starts[node.end_lineno - 1] + node.end_col_offset
        return starts[node.lineno - 1] + node.col_offset

    found = []
    for node in ast.walk(ast.parse(text)):
        pairs: list[tuple[ast.expr, ast.AST, ast.expr]] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            pairs = list(zip(operands, node.ops, operands[1:], strict=False))
        elif isinstance(node, ast.BoolOp):
            pairs = [
                (one, node.op, two) for one, two in zip(node.values, node.values[1:], strict=False)
            ]
        elif isinstance(node, ast.BinOp):
            pairs = [(node.left, node.op, node.right)]
        for left, kind, right in pairs:
            start, end = place(left, end=True), place(right, end=False)
            between = text[start:end].decode()
            word = _word(kind)
            if type(kind) in _FLIPS and between.strip(" \n()") == word and "#" not in between:
                flipped = between.replace(word, _FLIPS[type(kind)], 1)
                found.append(Mutant(plugin, str(file), left.end_lineno or 0, start, end, flipped))
    return found


def _word(kind: ast.AST) -> str:
    """Write an operator as source has it."""
    two: ast.expr = ast.Name("b")
    one: ast.expr = ast.Name("a")
    made: ast.expr
    if isinstance(kind, ast.cmpop):
        made = ast.Compare(one, [kind], [two])
    elif isinstance(kind, ast.boolop):
        made = ast.BoolOp(kind, [one, two])
    else:
        assert isinstance(kind, ast.operator)
        made = ast.BinOp(one, kind, two)
    return ast.unparse(made)[1:-1].strip()


def _survives(copy: Path, mutant: Mutant) -> bool:
    """Flip one operator, run the tests of its plugin, and put it back."""
    file = Path(mutant.file)
    before = file.read_bytes()
    _put(file, before[: mutant.start] + mutant.flipped.encode() + before[mutant.end :])
    try:
        is_alive = all(
            _test(copy, mutant.plugin, "-x", "-m", which) in (0, _NO_TESTS) for which in _MARKS
        )
    finally:
        _put(file, before)
    if is_alive:
        line = before.splitlines()[mutant.line - 1].decode().strip()
        where = f"{file.relative_to(copy)}:{mutant.line}"
        print(f"  survived: {where}: {line}   ({mutant.flipped.strip()})", flush=True)
    return is_alive


def _put(file: Path, text: bytes) -> None:
    """Write *file* with a time that it never had: bytecode is known by seconds and size alone."""
    file.write_bytes(text)
    later = next(_times)
    os.utime(file, (later, later))


def _test(copy: Path, plugin: str, *more: str, cover: Path | None = None) -> int:
    """Run tests of *plugin*; return the exit status, 1 if they hang."""
    sources = [copy / "core/src", *sorted(copy.glob("plugins/*/src")), copy]
    run = ["-m", "pytest", "-q", *more, *TESTS[plugin]]
    if cover is not None:
        sources.append(cover.parent)
        run = ["-m", "coverage", "run", f"--rcfile={cover}", *run]
    path = os.pathsep.join(map(str, sources))  # an empty entry would be the current folder
    env, run = os.environ | {"PYTHONPATH": path}, [sys.executable, *run]
    most = _TIMEOUT_S if cover is None else None
    try:
        done = subprocess.run(run, cwd=copy, env=env, capture_output=True, timeout=most)
    except subprocess.TimeoutExpired:
        return 1
    if cover is not None and done.returncode != 0:
        said = (done.stdout + done.stderr).decode()[-2000:]
        raise SystemExit(f"the tests of {plugin} fail as they are:\n{said}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
