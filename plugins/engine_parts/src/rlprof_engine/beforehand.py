"""Advice on an engine's options before it exists, for `rlprof check` and `rlprof doctor`."""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof import Advice

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def who_records(
    tools: Iterable[str], *, way: str, is_native: bool, profiler: str, word: str
) -> str:
    """Say what records a replica, or what that depends on.

    *is_native*: only the engine's own profiler can do what was asked. *profiler*: its name. *word*:
    the engine's name for its processes.
    """
    names = ", ".join(tools)
    if is_native or way == "native" or not names:
        return f"{profiler} records" + (f" in place of {names}" if names else "")
    if way == "worker" or names != "torch":
        return f"inside it: {names}"
    return f"inside it: {names}; without rlprof in its {word}, {profiler} records instead"


def beyond_known(version: str, newest: str) -> list[Advice]:
    """Warn of a release newer than *newest*, the last release whose sources we read."""
    if _numbers(version) <= _numbers(newest):
        return []
    text = f"{version} is newer than {newest}, the newest that rlprof knows; record a step to"
    return [Advice(f"{text} check that it works", "release", "warning")]


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
