"""Examines the installed SGLang without an import, which takes seconds and needs its devices."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

from rlprof import Advice, CaptureError
from rlprof_engine.beforehand import beyond_known, sources_of
from rlprof_sglang._words import PLUGIN

if TYPE_CHECKING:
    from pathlib import Path

NEWEST = "0.5.23"
"""The newest release whose sources we read; tests compare it with their list of releases."""


def sources_here() -> Path | None:
    """Find the installed SGLang without importing it."""
    return sources_of("sglang", "srt")


def version() -> str:
    """Return its version."""
    try:
        return version_of("sglang")
    except PackageNotFoundError:
        return "of unknown version"


def is_version_2() -> bool:
    """Whether SGLang uses its second profiler, which can start by stage, but cannot be stopped."""
    return os.environ.get("SGLANG_PROFILE_V2", "").lower() in ("1", "true", "yes", "y")


def capabilities() -> list[Advice]:
    """List what the installed SGLang can record, and by which way."""
    if sources_here() is None:
        raise CaptureError(
            "SGLang is not installed here; install rlprof-sglang where the engine runs"
        )
    allowed = os.environ.get("SGLANG_PLUGINS")
    is_admitted = not allowed or PLUGIN in map(str.strip, allowed.split(","))
    lacks = []
    inside = "any tool, any rank, exact iterations; launched by rlprof.launch"
    if not is_admitted:
        without = f"SGLANG_PLUGINS is {allowed!r}, without {PLUGIN}"
        inside = f"not admitted: {without}; the launch's environment adds it"
        lacks.append("way worker")
    native = "torch; by stage; its own merge"
    if is_version_2():
        native = "SGLANG_PROFILE_V2 is set; its profiler ends the schedulers; unset it"
        lacks.append("way native")
    found = {
        "sglang": version(),
        "way worker": inside,
        "way native": native,
    }
    return [
        *(Advice(how, what, "warning" if what in lacks else "note") for what, how in found.items()),
        *newer_than_known(),
    ]


def newer_than_known() -> list[Advice]:
    """Warn of an SGLang newer than the sources that we read."""
    return [] if sources_here() is None else beyond_known(version(), NEWEST)
