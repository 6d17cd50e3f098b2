"""Advice on an engine's options before it exists, for `rlprof check` and `rlprof doctor`."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import Advice

if TYPE_CHECKING:
    from collections.abc import Iterable


def advice_on(
    options: Any,
    tools: Iterable[str],
    is_native: bool,  # noqa: FBT001
    profiler: str,
    word: str,
) -> list[Advice]:
    """Say what records a replica, or what that depends on; then, on its host, what cannot work.

    *is_native*: only the engine's own profiler can do what was asked. *profiler*: its name. *word*:
    the engine's name for its processes.
    """
    names, way = ", ".join(tools), options.way
    if is_native or way == "native" or not names:
        text = f"{profiler} records" + (f" in place of {names}" if names else "")
    elif way == "worker" or names != "torch":
        text = f"inside it: {names}"
    else:
        text = f"inside it: {names}; without rlprof in its {word}, {profiler} records instead"
    found = [Advice(text, about="records")]
    if way == "worker" or options.profiler_dir is None:
        return found
    why = cannot_be_written(Path(options.profiler_dir).expanduser().absolute())
    if why and (way == "native" or is_native or not names):
        found.append(Advice(why, "profiler_dir", "fault"))
    elif why:
        words = f"{why}: if {profiler} stands in for the tools, no window opens"
        found.append(Advice(words, "profiler_dir", "warning"))
    return found


def beyond_known(version: str, newest: str) -> list[Advice]:
    """Warn of a release newer than *newest*, the last release whose sources we read."""
    if _numbers(version) <= _numbers(newest):
        return []
    text = f"{version} is newer than {newest}, the newest that rlprof knows; record a step to"
    return [Advice(f"{text} check that it works", "release", "warning")]


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


def cannot_be_written(folder: Path) -> str:
    """Say why no file can be written below *folder*; remove the folders made for this check."""
    missing: list[Path] = []
    try:
        missing += [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as exc:
        return f"{folder}: {exc.strerror or exc}; name a folder that can be made and written to"
    finally:
        for path in missing:
            with suppress(OSError):  # it was not made, or it is no longer empty
                path.rmdir()
