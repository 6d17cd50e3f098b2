"""Loads packages of other distributions for names of `rlprof`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def load(package: str, *, asked: str) -> ModuleType:
    """Import *package*; if it is missing, name the distribution that `rlprof.<asked>` needs."""
    try:
        return import_module(package)
    except ModuleNotFoundError as exc:
        if exc.name != package.partition(".")[0]:
            raise
        dist = exc.name.replace("_", "-")
        raise ImportError(
            f"rlprof.{asked}: needs {dist}; pip install {dist}", name=exc.name
        ) from None
