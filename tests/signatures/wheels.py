"""Wheels of engines, through pip and the index it is configured for; nothing else is asked."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BINARY = ("--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--disable-pip-version-check")
_PLATFORM = ("--python-version", "3.12", "--implementation", "cp", *(
    word for minor in range(17, 40) for word in ("--platform", f"manylinux_2_{minor}_x86_64")
), "--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64")  # fmt: skip
"""One machine for all: a release may have a wheel for each Python, and one must be the wheel."""
_LIMIT_S = 1200
_ADDRESS = re.compile(r"\w+://\S+|/\S+")


class NotHad(Exception):
    """A wheel cannot be had; the message says which and why, without a place."""


def stated(requirement: str) -> tuple[str, str]:
    """Return a wheel's file name and sha256 as the index states them, without fetching it."""
    with tempfile.TemporaryDirectory(prefix="rlprof-wheels-") as folder:
        report = Path(folder, "report.json")
        # Of a remote archive pip then reads its metadata alone.
        _pip("install", "--dry-run", "--ignore-installed", "--use-feature=fast-deps",
             "--target", folder, "--report", str(report), requirement)  # fmt: skip
        (found,) = json.loads(report.read_text(encoding="utf-8"))["install"]
    info = found["download_info"]
    name = info["url"].rpartition("/")[2].partition("#")[0]
    return name, info["archive_info"]["hashes"]["sha256"]


@contextmanager
def fetched(requirement: str) -> Iterator[Path]:
    """Fetch a wheel, and delete it afterwards: one can have half a gigabyte."""
    with tempfile.TemporaryDirectory(prefix="rlprof-wheels-") as folder:
        _pip("download", "--dest", folder, requirement)
        (wheel,) = Path(folder).glob("*.whl")
        yield wheel


def sha256(file: Path) -> str:
    """Compute a file's checksum."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def sources(wheel: Path) -> dict[str, str]:
    """Read the Python files of a wheel: path → text."""
    with zipfile.ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if name.endswith(".py")]
        return {name: packed.read(name).decode("utf-8") for name in names}


def _pip(verb: str, *arguments: str) -> None:
    requirement = arguments[-1]
    command = [sys.executable, "-m", "pip", verb, "-q", *_BINARY, *_PLATFORM, *arguments]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NotHad(f"{requirement}: pip {verb} took more than {_LIMIT_S} s") from None
    except subprocess.CalledProcessError as exc:
        lines = [line for line in exc.stderr.splitlines() if line.startswith("ERROR")]
        why = _ADDRESS.sub("...", (lines or ["ERROR: it said nothing"])[-1])
        raise NotHad(f"{requirement}: pip {verb}: {why}") from None
