"""What is wrong with a config: every fault by its path, told in one error with its line."""

from __future__ import annotations

from typing import Any

import attrs

from rlprof.errors import ConfigError, shown

BAD: Any = object()
"""Stands for a value that cannot be used."""

_LONGEST_KEY = 80
"""Longer ones are cut where they are shown."""


@attrs.define
class Faults:
    """Collects *where: what is wrong; what to do*, by path."""

    source: str = "config"
    """What the config is called: its file, where it has one."""
    lines: dict[str, int] = attrs.field(factory=dict)
    """Path of a key → its line in the file."""
    found: dict[str, list[str]] = attrs.field(factory=dict)

    def add(self, path: str, message: str) -> Any:
        """Note a fault, once, and return what stands for the value."""
        told = self.found.setdefault(path, [])
        if message not in told:
            told.append(message)
        return BAD

    def below(self, path: str) -> bool:
        """Whether anything is wrong with *path* or what is in it."""
        return any(here == path or here.startswith((f"{path}.", f"{path}[")) for here in self.found)

    def __bool__(self) -> bool:
        return bool(self.found)

    def raise_any(self) -> None:
        """Raise one ConfigError with all of them, in the order of the file."""
        told = [
            f"{self._place(path)}: {message}"
            for path in sorted(self.found, key=self._line)
            for message in self.found[path]
        ]
        if told:
            raise ConfigError(told, self.source)

    def _place(self, path: str) -> str:
        line = self._line(path)
        place = f"{self.source}:{line}" if line else self.source
        return f"{place}: {path}" if path else place

    def _line(self, path: str) -> int:
        """Return the line of *path*, or of the nearest thing around it; 0: it has none."""
        while path and path not in self.lines:
            path = path.rpartition("[" if path.endswith("]") else ".")[0]
        return self.lines.get(path, 0)


def join(path: str, key: object) -> str:
    """Return the path of *key* inside *path*."""
    is_plain = isinstance(key, str) and key.isprintable() and len(key) <= _LONGEST_KEY
    name = str(key) if is_plain else shown(key)
    return f"{path}.{name}" if path else name
