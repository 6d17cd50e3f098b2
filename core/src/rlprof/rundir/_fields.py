"""Values of a line, read also where a later version has said more of them than is known here."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import attrs

T = TypeVar("T", bound=attrs.AttrsInstance)


def known(cls: type[T], said: Any) -> T:
    """Make a *cls* of what was *said*, passing over fields that *cls* has not."""
    if not isinstance(said, dict):
        raise TypeError(said)
    names = _names(cls)
    return cls(**{key: value for key, value in said.items() if key in names})


@cache
def _names(cls: type[Any]) -> frozenset[str]:
    return frozenset(attrs.fields_dict(cls))
