"""Every deliberate error of rlprof: *where: what is wrong; what to do*."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_REPR = reprlib.Repr()
_REPR.maxlevel = 3
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = 60


def shown(value: object) -> str:
    """Show a value of the user in a message, cut short, at any depth or length."""
    try:
        text = _REPR.repr(value)
    except (ValueError, TypeError, AttributeError):  # Python writes no int of 4301 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(words: object, *, longest: int = 200) -> str:
    """Turn foreign text, such as an exception, into one printable line, cut short."""
    text = " ".join(str(words)[: 20 * longest].split())  # training's may be endless
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def raised(exc: BaseException) -> str:
    """Return the type and message of *exc* as one printable line."""
    return one_line(f"{type(exc).__name__}: {exc}", longest=500)


def with_article(noun: str) -> str:
    """Return *noun* with `a` or `an` before it."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def closest(value: object, known: Iterable[str], cutoff: float = 0.65) -> str:
    """Suggest the one of *known* that is near *value*, if there is one."""
    from difflib import get_close_matches

    if type(value) is not str or len(value) > 100:
        return ""
    close = get_close_matches(value, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


class RlprofError(Exception):
    """The root of all errors rlprof raises on purpose."""


class ConfigError(RlprofError):
    """A configuration that cannot work; carries all faults, not only the first."""

    def __init__(self, faults: Sequence[str], source: str = "config", page: str = "") -> None:
        self.faults = tuple(faults)
        self.source = source
        self.page = page  # the command that helps; below a traceback, too
        head = [f"{source}: {len(self.faults)} faults"] if len(self.faults) != 1 else []
        super().__init__("\n  ".join([*head, *self.faults]))
        self.__notes__ = [page] if page else []

    def __reduce__(self) -> tuple[type[ConfigError], tuple[Sequence[str], str, str]]:
        return type(self), (self.faults, self.source, self.page)  # it travels between processes


class PluginError(RlprofError):
    """A plugin that is missing, broken, or made for another core."""


class CaptureError(RlprofError):
    """A tool refuses or fails to record; plugins raise it, core notes it in the manifest."""


class RunError(RlprofError):
    """A run folder that cannot be read or written."""
