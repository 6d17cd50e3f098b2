"""The small values of a config: a size, ranks, names; what is taken is what was written."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import yaml

from rlprof.config._values import parse_names, parse_ranks, parse_size
from tests.fuzz._loop import Parser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS = (b"4GB", b"512 MiB", b"1.5KB", b"1000000", b"0.5", b"9223372036854775807", b"2TiB", b"7 B",
         b"all", b"[0, 7, 3]", b"3", b"[torch, nsys]", b"torch", b'[""]', b"[]")  # fmt: skip
TOKENS = (b"GB", b"gib", b"KiB", b"TB", b".", b" ", b"-", b"\xc2\xb2", b"\xd9\xa1", b"e9", b"_",
          b"all", b"[", b"]", b", ", b"true", b"null", b"2147483647",
          b"999999999999999")  # fmt: skip
_UNIT = {"K": 1, "M": 2, "G": 3, "T": 4}


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Feed all three readers."""
    try:
        value = yaml.safe_load(data)
    except Exception:
        value = data.decode("latin-1")
    size = _read(parse_size, value)
    if isinstance(size, int):
        assert type(size) is int
        assert 1 <= size < 2**63
        # A float holds 53 bits: a millionth of a millionth is all that may be lost.
        assert abs(size - _plainly(value)) <= 1 + size // 10**12
    ranks = _read(parse_ranks, value)
    if isinstance(ranks, tuple):
        written = value if isinstance(value, list) else [value]
        assert sorted(set(written)) == list(ranks)
        assert all(type(rank) is int and 0 <= rank < 2**31 for rank in ranks)
    names = _read(parse_names, value)
    if isinstance(names, tuple):
        assert list(names) == (value if isinstance(value, list) else [value])
    return f"{_kind(size)} | {_kind(ranks)} | {_kind(names)}"


def _read(parse: Callable[[Any], Any], value: Any) -> Any:
    try:
        return parse(value)
    except ValueError as exc:
        words = str(exc)
    assert words.isprintable(), words
    return words


def _kind(result: Any) -> str:
    return result.partition(", got ")[0] if isinstance(result, str) else type(result).__name__


def _plainly(value: Any) -> int:
    if isinstance(value, int):
        return value
    number, unit = re.fullmatch(r"([\d.]+)\s*([A-Za-z]*)", value).groups()
    base = 1024 if "i" in unit.lower() else 1000
    return int(Decimal(number) * base ** _UNIT.get(unit[:1].upper(), 0))


PARSER = Parser(
    "sizes", "yaml", ("/rlprof/config/_values.py",), TOKENS, lambda _: list(SEEDS), check
)
