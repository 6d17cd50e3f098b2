"""The signatures of an engine's releases: read out of their wheels, kept, and checked."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

Json = dict[str, object]

_ROOM = 3 << 30
"""Bytes that a refresh leaves free, besides the wheel that it fetches."""
_WIDTH = 100


class Record(NamedTuple):
    """The record of *releases* in *file*; *described* makes an entry of a release's sources."""

    file: Path
    releases: tuple[str, ...]
    described: Callable[[Mapping[str, str]], Json]
    compiled: str = ""
    """A compiled module in the wheel, which `described` gets as text: its names are in it."""

    def kept(self) -> dict[str, Json]:
        """Return what is known: release → its wheel, and what was read in it."""
        return json.loads(self.file.read_text(encoding="utf-8"))

    def refresh(self, releases: tuple[str, ...]) -> int:
        """Read *releases* again; an entry that cannot be read again stays, and is reported."""
        found = self.kept() if self.file.exists() else {}
        faults = 0
        for number, release in enumerate(releases, 1):
            try:
                found[release] = self._read(release)
            except (NotHad, OSError, SyntaxError) as exc:
                faults += 1
                _say(number, releases, f"{release}: cannot be had: {_why(exc, release)}")
                continue
            _say(number, releases, f"{release}: {found[release]['wheel']}")
            ordered = {name: found[name] for name in (*self.releases, *found) if name in found}
            self.file.write_text(laid_out(ordered) + "\n", encoding="utf-8")
        return faults

    def _read(self, release: str) -> Json:
        if shutil.disk_usage(tempfile.gettempdir()).free < _ROOM:
            raise NotHad(f"{release}: less than {_ROOM >> 30} GiB are free for its wheel")
        name, known = stated(release)
        with fetched(release) as wheel:
            if (wheel.name, sha256(wheel)) != (name, known):
                raise NotHad(f"{release}: {wheel.name} is not the file the index states")
            said = self.described(sources(wheel, self.compiled))
        return {"wheel": name, "sha256": known, **said}

    def news(self) -> int:
        """Read the newest releases of the index; count those whose content is not on record."""
        found, faults = self.kept(), 0
        known = [_content(said) for said in found.values()]
        names = sorted({release.partition("==")[0] for release in self.releases})
        for number, name in enumerate(names, 1):
            try:
                newest = f"{name}=={stated(name)[0].split('-')[1]}"
                is_new = newest not in found and _content(self._read(newest)) not in known
            except (NotHad, OSError, SyntaxError) as exc:
                faults += 1
                _say(number, names, f"{name}: cannot be had: {_why(exc, name)}")
                continue
            faults += is_new
            word = "says what no other does; add it, run --refresh" if is_new else "is known"
            _say(number, names, f"{newest}, the newest: {word}")
        return faults

    def main(self, prog: str, about: str | None, argv: list[str] | None = None) -> int:
        """Do what is asked; the exit status says whether all of it worked."""
        parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=about)
        verb = parser.add_mutually_exclusive_group(required=True)
        verb.add_argument("--refresh", action="store_true", help="read the wheels anew")
        verb.add_argument("--check", action="store_true", help="read the newest of the index")
        parser.add_argument("releases", nargs="*", help=f"like {self.releases[-1]}; none: all")
        asked = parser.parse_args(argv)
        releases = tuple(asked.releases) or self.releases
        faults = self.refresh(releases) if asked.refresh else self.news()
        return 1 if faults else 0


def number(release: str) -> tuple[int, ...]:
    """Return the number of a release: `sglang==0.5.3.post2` is (0, 5, 3, 2)."""
    return tuple(int(word) for word in re.findall(r"\d+", release.partition("==")[2]))


def laid_out(value: object, margin: str = "", taken: int = 0) -> str:
    """Write JSON with one line for each value that fits, after *taken* columns of a key."""
    flat = json.dumps(value)
    fits = len(margin) + taken + len(flat) < _WIDTH
    if fits or not value or not isinstance(value, dict | list):
        return flat
    inner = margin + " "
    if isinstance(value, list):
        return "[\n" + _filled([laid_out(one, inner) for one in value], inner) + f"\n{margin}]"
    items = []
    for name, one in value.items():
        key = f"{json.dumps(name)}: "
        items.append(key + laid_out(one, inner, len(key)))
    are_leaves = not any(isinstance(one, dict | list) for one in value.values())
    text = _filled(items, inner) if are_leaves else inner + f",\n{inner}".join(items)
    return f"{{\n{text}\n{margin}}}"


def _filled(items: list[str], margin: str) -> str:
    """Set items one after the other, as many on a line as fit."""
    lines: list[str] = []
    for number, item in enumerate(items, 1):
        word = item + "," * (number < len(items))
        if lines and len(lines[-1]) + len(word) + 1 < _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(margin + word)
    return "\n".join(lines)


def _content(said: Json) -> Json:
    return {key: one for key, one in said.items() if key not in {"wheel", "sha256"}}


def _why(exc: Exception, release: str) -> str:
    return str(exc).removeprefix(f"{release}: ")


def _say(number: int, releases: Sequence[str], text: str) -> None:
    print(f"[{number}/{len(releases)}] {text}", file=sys.stderr, flush=True)


# Wheels of engines, only through pip and the index that it is configured for


_BINARY = ("--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--disable-pip-version-check")
_PLATFORM = ("--python-version", "3.12", "--implementation", "cp", *(
    word for minor in range(17, 40) for word in ("--platform", f"manylinux_2_{minor}_x86_64")
), "--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64")  # fmt: skip
"""One platform for all: a release may have several wheels, of which one is on record."""
_LIMIT_S = 1200
_ADDRESS = re.compile(r"\w+://\S+|/\S+")


class NotHad(Exception):
    """A wheel cannot be had; the message has its name and the reason, without an address."""


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


def sources(wheel: Path, compiled: str = "") -> dict[str, str]:
    """Read the Python files of a wheel, and a *compiled* one: path → text."""
    with zipfile.ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if name.endswith(".py")]
        found = {name: packed.read(name).decode("utf-8") for name in names}
        return found | ({compiled: packed.read(compiled).decode("latin-1")} if compiled else {})


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
