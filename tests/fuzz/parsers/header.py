"""`run.json`: a run that can be listed, or a RunError that names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof import RunError
from rlprof.rundir._identity import _read_owner
from tests.fuzz._loop import Parser
from tests.fuzz.parsers import _runs

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = (b'"expected": {"actor": "all"}', b'"expected": {"actor": [0, 99]}', b'"attempt": 2',
          b'"opened_ns": ', b'"config": ', b"null", b"[", b"]", b"{", b"}", b"\xff")  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """The header of a run made in earnest, bare and with more in it."""
    path, _ = _runs.build(folder / "runs")
    whole = (path / "run.json").read_bytes()
    return [whole, whole.replace(b'"expected": {}', b'"expected": {"actor": "all", "ref": [0]}')]


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Put it into a run folder, and read that."""
    path = _runs.copy(folder.parent / "seeds" / "runs" / "a-run", folder / "a-run")
    (path / "run.json").write_bytes(data)
    _read_owner(path)
    try:
        return _runs.use(path, timeline=thorough)
    except RunError as exc:
        words = str(exc)
    assert words.startswith(f"{path / 'run.json'}: cannot be read: "), words
    return words.partition("cannot be read: ")[2].partition("(")[0]


TRACED = ("/rlprof_run/", "/rlprof/rundir/", "/rlprof_cli/")
PARSER = Parser("header", "json", TRACED, TOKENS, seeds, check)
