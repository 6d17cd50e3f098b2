"""Cases of a test, one after another: `pytest.mark.parametrize` without its brackets."""

from __future__ import annotations

from typing import Any

import pytest


def cases(names: str, *rows: Any, **how: Any) -> pytest.MarkDecorator:
    """Run a test for each of *rows*, which hold a value for each of *names*."""
    return pytest.mark.parametrize(names, rows, **how)
