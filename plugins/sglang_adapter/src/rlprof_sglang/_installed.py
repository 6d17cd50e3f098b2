"""Advice from the installed SGLang without an import, which takes seconds and needs its devices."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

from rlprof import Advice, CaptureError
from rlprof_engine.beforehand import advice_on, beyond_known, inside_advice, sources_of
from rlprof_sglang._words import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof_sglang._options import SglangOptions

OLDEST, NEWEST = "0.5.18", "0.5.23"
"""The releases whose sources we read; tests compare them with their list of releases."""


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


def advise(
    options: SglangOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; without *options*, list what the installed SGLang can do."""
    if options is None:
        return capabilities()
    is_native = bool(options.needs_native)
    found = advice_on(options.way, tools, is_native, "SGLang's own profiler", "schedulers")
    return [found, *(unknown_release() if on_host else ())]


def capabilities() -> list[Advice]:
    """List what the installed SGLang can record, and by which way."""
    if sources_here() is None:
        raise CaptureError("SGLang is not installed here; install SGLang where the engine runs")
    inside = "any tool, any rank, exact iterations; launched by rlprof.launch"
    native = Advice("torch; by stage; its own merge", "way native")
    if is_version_2():
        text = "SGLANG_PROFILE_V2 is set; its profiler ends the schedulers; unset it"
        native = Advice(text, "way native", "warning")
    first = Advice(f"{version()}; the newest that rlprof knows is {NEWEST}", "sglang")
    return [first, inside_advice(inside, PLUGINS, empty_is_all=True), native, *unknown_release()]


def unknown_release() -> list[Advice]:
    """Warn of an SGLang older or newer than the sources that we read."""
    return [] if sources_here() is None else beyond_known(version(), OLDEST, NEWEST)
