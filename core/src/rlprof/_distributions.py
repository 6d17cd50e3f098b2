"""Packages of other distributions that a name of `rlprof` stands for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def load(package: str, *, asked: str) -> ModuleType:
    """Import *package*; where it is missing, say which distribution `rlprof.<asked>` needs."""
    try:
        return import_module(package)
    except ModuleNotFoundError as exc:
        if exc.name != package.partition(".")[0]:
            raise
        dist = exc.name.replace("_", "-")
        raise ImportError(
            f"rlprof.{asked}: needs {dist}; pip install {dist}", name=exc.name
        ) from None
