"""Changes to an input: to its bytes, to its lines, and to the data it stands for."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

LONGEST = 20_000
"""Bytes of an input; what parsers do with size is the business of the benchmarks."""

_NUMBERS = (b"0", b"-1", b"1", b"255", b"2147483648", b"9223372036854775807", b"1" + b"0" * 19,
            b"1e400", b"-0.0", b"0.1", b"1e-9", b"NaN", b"Infinity", b"9" * 5000)  # fmt: skip
_VALUES = (None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 1.5, 1e300, float("nan"),
           float("inf"), "", "x", "actor", "\x00", "\n", "\ud800", "é", "../..", "a" * 300,
           [], {}, [None], [[]], {"": None}, {"a": {"a": {}}})  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


class Mutator:
    """Makes new inputs from old ones, the same for the same *random*."""

    def __init__(self, random: random.Random, tokens: Sequence[bytes], kind: str) -> None:
        self._random = random
        self._tokens = tokens
        self._changes: list[Callable[[bytes, bytes], bytes]] = [
            self._flip, self._cut, self._truncate, self._repeat, self._insert, self._over,
            self._splice, self._number, self._lines,
        ]  # fmt: skip
        if kind == "yaml":
            self._changes += [self._tree] * 6

    def change(self, data: bytes, other: bytes) -> bytes:
        """Return *data*, changed one to four times; *other* is another input to take from."""
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3, 4))):
            data = self._random.choice(self._changes)(data, other)
        return data[:LONGEST]

    def _spot(self, data: bytes) -> tuple[int, int]:
        start = self._random.randint(0, len(data))
        longest = self._random.choice((1, 4, 16, 256))
        return start, min(len(data), start + self._random.randint(0, longest))

    def _flip(self, data: bytes, other: bytes) -> bytes:
        if not data:
            return data
        at = self._random.randrange(len(data))
        other_bit = data[at] ^ 1 << self._random.randrange(8)
        any_byte = self._random.randrange(256)
        value = self._random.choice((other_bit, any_byte, *b'"\\{}[]:,\n\x00 -'))
        return data[:at] + bytes([value]) + data[at + 1 :]

    def _cut(self, data: bytes, other: bytes) -> bytes:
        start, end = self._spot(data)
        return data[:start] + data[end:]

    def _truncate(self, data: bytes, other: bytes) -> bytes:
        return data[: self._random.randint(0, len(data))]

    def _repeat(self, data: bytes, other: bytes) -> bytes:
        start, end = self._spot(data)
        return data[:start] + data[start:end] * self._random.choice((2, 2, 3, 40)) + data[end:]

    def _insert(self, data: bytes, other: bytes) -> bytes:
        start, _ = self._spot(data)
        return data[:start] + self._random.choice(self._tokens) + data[start:]

    def _over(self, data: bytes, other: bytes) -> bytes:
        start, end = self._spot(data)
        return data[:start] + self._random.choice(self._tokens) + data[end:]

    def _splice(self, data: bytes, other: bytes) -> bytes:
        start, end = self._spot(data)
        first, last = self._spot(other)
        return data[:start] + other[first:last] + data[end:]

    def _number(self, data: bytes, other: bytes) -> bytes:
        found = list(_NUMBER.finditer(data))
        if not found:
            return data
        hit = self._random.choice(found)
        return data[: hit.start()] + self._random.choice(_NUMBERS) + data[hit.end() :]

    def _lines(self, data: bytes, other: bytes) -> bytes:
        lines = data.split(b"\n")
        at = self._random.randrange(len(lines))
        what = self._random.randrange(5)
        if what == 0:
            del lines[at]
        elif what == 1:
            lines.insert(at, lines[at])
        elif what == 2:
            lines.insert(self._random.randrange(len(lines)), lines.pop(at))
        elif what == 3:
            lines.insert(at, self._random.choice(other.split(b"\n")))
        else:
            lines[at] = b"  " + lines[at]
        return b"\n".join(lines)

    def _tree(self, data: bytes, other: bytes) -> bytes:
        """Change the data behind the text, if it stands for any."""
        try:
            tree = copy.deepcopy(_read_yaml(data))
            self._branch(tree, _read_yaml(other))
            return _write_yaml(tree)
        except Exception:
            return self._flip(data, other)

    def _branch(self, tree: Any, other: Any) -> None:
        """Change one place in *tree*."""
        around = self._random.choice([node for node in _nodes(tree) if node])
        keys = list(around) if isinstance(around, dict) else list(range(len(around)))
        key = self._random.choice(keys)
        what = self._random.randrange(7)
        if what == 0:
            del around[key]
        elif what == 1:
            around[key] = self._random.choice([around[key], *_nodes(other)])
        elif what == 2:
            around[key] = [around[key]]
        elif what == 3 and isinstance(around, dict):
            around[self._random.choice(["", "x", *self._words(other)])] = around.pop(key)
        elif what == 4:
            around[key] = around[self._random.choice(keys)]
        else:
            around[key] = self._random.choice(_VALUES)

    @staticmethod
    def _words(other: Any) -> list[str]:
        return [str(key) for node in _nodes(other) if isinstance(node, dict) for key in node]


def _nodes(tree: Any) -> list[Any]:
    """List all lists and mappings in *tree*."""
    found, waiting = [], [tree]
    while waiting and len(found) < 1000:
        node = waiting.pop()
        if isinstance(node, (dict, list)):
            found.append(node)
            waiting += node.values() if isinstance(node, dict) else node
    return found


def _read_yaml(data: bytes) -> Any:
    import yaml

    return yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def _write_yaml(tree: Any) -> bytes:
    import yaml

    return yaml.dump(tree, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)).encode()
