"""Parametrised tests in rows, and errors as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def cases(names: str, *rows: Any, **how: Any) -> pytest.MarkDecorator:
    """Run a test for each of *rows*, which hold one value for each of *names*."""
    return pytest.mark.parametrize(names, rows, **how)


def refused(error: type[Exception], call: Callable[..., Any], *args: Any, **given: Any) -> str:
    """Return the message of the *error* that a call raises."""
    with pytest.raises(error) as caught:
        call(*args, **given)
    return str(caught.value)
