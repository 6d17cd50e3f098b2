"""Whether a version is what a requirement asks for, as far as plain numbers can tell.

`packaging` knows all of PEP 440, and would be one more thing every training image must hold; what
plugins ask of core are a lower and an upper bound. What is not plain here is taken to fit.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+(?:\[[^\]]*\])?\(?([^();@]*)\)?")
_CLAUSE = re.compile(r"(~=|==|!=|<=|>=|<|>)(\d+(?:\.\d+)*)(\.\*)?")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_Release = tuple[int, ...]
_HOLDS: dict[str, Callable[[_Release, _Release], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le,
    ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


def refuses(requirement: str, version: str) -> bool:
    """Whether *version* is for certain not what *requirement* asks for."""
    release, whole = _RELEASE.match(version), _REQUIREMENT.fullmatch(re.sub(r"\s", "", requirement))
    if release is None or whole is None or "!" in version:
        return False
    clauses = [_CLAUSE.fullmatch(clause) for clause in whole[1].split(",")]
    has, is_plain = _numbers(release[0]), release[0] == version
    return any(clause and not _holds(clause, has, is_plain=is_plain) for clause in clauses)


def _holds(clause: re.Match[str], has: _Release, *, is_plain: bool) -> bool:
    sign, wanted, star = clause[1], _numbers(clause[2]), clause[3]
    if star and sign in ("==", "!="):
        begins = _padded(has, len(wanted))[: len(wanted)] == wanted
        return begins == (sign == "==")
    if sign == "~=":
        has = _padded(has, len(wanted))
        return has >= wanted and has[: len(wanted) - 1] == wanted[:-1]
    longest = max(len(has), len(wanted))
    has, wanted = _padded(has, longest), _padded(wanted, longest)
    if has == wanted and not is_plain:  # 0.2rc1 and 0.2: which is the later is not looked into
        return True
    return _HOLDS[sign](has, wanted)


def _numbers(text: str) -> _Release:
    return tuple(int(number) for number in text.split("."))


def _padded(release: _Release, length: int) -> _Release:
    return release + (0,) * (length - len(release))
