"""Examines the installed SGLang without an import, which takes seconds and needs its devices."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

from rlprof import Advice, CaptureError
from rlprof_engine.beforehand import beyond_known
from rlprof_sglang._facts import EXACT, SPANS, release
from rlprof_sglang._words import PLUGIN

NEWEST = "0.5.23"
"""The newest release whose sources we read; tests compare it with their list of releases."""


def sources_here() -> Path | None:
    """Find the installed SGLang without importing it."""
    try:
        found = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found is not None else []
    known = [Path(place) for place in places if Path(place, "srt").is_dir()]
    return known[0] if known else None  # else a folder of that name by the script


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
    sources = sources_here()
    if sources is None:
        raise CaptureError(
            "SGLang is not installed here; install rlprof-sglang where the engine runs"
        )
    here = release(version())
    allowed = os.environ.get("SGLANG_PLUGINS")
    is_admitted = not allowed or PLUGIN in map(str.strip, allowed.split(","))
    lacks = []
    inside = "any tool, any rank, exact iterations; launched by rlprof.launch"
    if not (sources / "srt/plugins").is_dir():
        inside = "none before SGLang 0.5.11: it loads no plugins in its schedulers"
        lacks.append("way worker")
    elif not is_admitted:
        without = f"SGLANG_PLUGINS is {allowed!r}, without {PLUGIN}"
        inside = f"not admitted: {without}; the launch's environment adds it"
        lacks.append("way worker")
    native = "torch; by stage; its own merge"
    if is_version_2():
        native = "SGLANG_PROFILE_V2 is set; its profiler ends the schedulers; unset it"
        lacks.append("way native")
    exact = "exact" if not here or here >= EXACT else "exact, by asking for one more"
    found = {
        "sglang": version(),
        "way worker": inside,
        "way native": native,
        "native iterations": f"count {exact}; skip only with rlprof in the schedulers",
        "native steps": "read back from the trace" if not here or here >= SPANS else "unknown",
        "requests": "queued, prefill, decode, tokens, cached tokens, retractions; "
        "when they waited, with enable_metrics",
    }
    return [
        *(Advice(how, what, "warning" if what in lacks else "note") for what, how in found.items()),
        *newer_than_known(),
    ]


def newer_than_known() -> list[Advice]:
    """Warn of an SGLang newer than the sources that we read."""
    return [] if sources_here() is None else beyond_known(version(), NEWEST)
