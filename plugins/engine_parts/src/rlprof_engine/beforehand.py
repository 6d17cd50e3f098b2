"""What can be said of an engine's options before there is an engine: for checks, and the doctor."""

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
    """Say what records a replica, where it is known; else what that depends on.

    *is_native*: only the engine's own profiler can do what is asked. *profiler* is what that is
    called, *word* what the engine calls its processes.
    """
    names = ", ".join(tools)
    if is_native or way == "native" or not names:
        return f"{profiler} records" + (f", and stands for {names}" if names else "")
    if way == "worker" or names != "torch":
        return f"inside it: {names}"
    return f"inside it: {names}; where rlprof is not in its {word}, {profiler} stands for it"


def beyond_known(version: str, newest: str) -> list[Advice]:
    """Warn of a release newer than *newest*, the last one whose sources were read."""
    if _numbers(version) <= _numbers(newest):
        return []
    text = f"{version} is newer than {newest}, the newest that rlprof knows; record a step to see"
    return [Advice(f"{text} whether it still fits", "release", "warning")]


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of *version*; none if it has no release number."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def cannot_be_written(folder: Path) -> str:
    """Say why no file can be written below *folder*; what had to be made for that is taken away."""
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
            with suppress(OSError):  # it was not made, or somebody has put something there
                path.rmdir()
