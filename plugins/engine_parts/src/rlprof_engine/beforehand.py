"""Advice on an engine's options before it exists, for `rlprof check` and `rlprof doctor`."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof import Advice, CaptureError
from rlprof_engine.launching import PLUGIN, admitted

if TYPE_CHECKING:
    from collections.abc import Iterable


def advice_on(
    way: str,
    tools: Iterable[str],
    is_native: bool,  # noqa: FBT001
    profiler: str,
    word: str,
) -> Advice:
    """Say what records a replica, or what that depends on.

    *is_native*: only the engine's own profiler can do what was asked. *profiler*: its name. *word*:
    the engine's name for its processes.
    """
    names = ", ".join(tools)
    if is_native or way == "native" or not names:
        text = f"{profiler} records" + (f" in place of {names}" if names else "")
    elif way == "worker" or names != "torch":
        text = f"inside it: {names}"
    else:
        text = f"inside it: {names}; without rlprof in its {word}, {profiler} records instead"
    return Advice(text, about="records")


def inside_advice(text: str, variable: str, *, empty_is_all: bool = False) -> Advice:
    """Say what the way `worker` can do, or that *variable* keeps our plugin out."""
    if not admitted(variable, empty_is_all=empty_is_all):
        return Advice(text, "way worker")
    text = f"not admitted: {variable} is {os.environ[variable]!r}, without {PLUGIN}; the launch's "
    return Advice(f"{text}environment adds it", "way worker", "warning")


def capabilities(
    engine: str, version: str, oldest: str, newest: str, ways: Iterable[Advice]
) -> list[Advice]:
    """List what the installed *engine* can record by each of its *ways*.

    Raise CaptureError if it is not installed: *version* is empty.
    """
    if not version:
        what = f"{engine} is not installed here"
        raise CaptureError(f"{what}; install {engine} where the engine runs")
    first = Advice(f"{version}; the newest that rlprof knows is {newest}", engine.lower())
    return [first, *ways, *beyond_known(version, oldest, newest)]


def beyond_known(version: str, oldest: str, newest: str) -> list[Advice]:
    """Warn of a release older than *oldest* or newer than *newest*: we read the sources between."""
    here = _numbers(version)
    if here > _numbers(newest):
        text = f"is newer than {newest}, the newest"
    elif here and here < _numbers(oldest):
        text = f"is older than {oldest}, the oldest"
    else:
        return []
    text = f"{version} {text} that rlprof knows; record a step to check that it works"
    return [Advice(text, "release", "warning")]


def sources_of(package: str, holds: str) -> Path | None:
    """Find an installed package without importing it: an import takes seconds, and its devices.

    *holds*: a path in it, so that a folder of that name by the script is not taken for it.
    """
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return next((Path(place) for place in places if Path(place, holds).exists()), None)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of *version*; none if it has no release number."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
