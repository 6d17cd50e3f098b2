"""The signatures of an engine's releases: read out of their wheels, kept, and checked.

Which releases, and what is read in them, each adapter's `signatures.py` says. Wheels come by pip,
one at a time, each deleted again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.signatures import wheels

Json = dict[str, object]

_ROOM = 3 << 30
"""Bytes a refresh leaves free, beside the wheel it fetches."""
_WIDTH = 100


class Record(NamedTuple):
    """What is known of *releases*, in *file*, as *described* says it of a release's sources."""

    file: Path
    releases: tuple[str, ...]
    described: Callable[[Mapping[str, str]], Json]

    def kept(self) -> dict[str, Json]:
        """Return what is known: release → its wheel, and what was read in it."""
        return json.loads(self.file.read_text(encoding="utf-8"))

    def refresh(self, releases: tuple[str, ...]) -> int:
        """Read *releases* anew; what cannot be had stays as it was, and is told."""
        found = self.kept() if self.file.exists() else {}
        faults = 0
        for number, release in enumerate(releases, 1):
            try:
                found[release] = self._read(release)
            except (wheels.NotHad, OSError, SyntaxError) as exc:
                faults += 1
                _say(number, releases, f"{release}: cannot be had: {_why(exc, release)}")
                continue
            _say(number, releases, f"{release}: {found[release]['wheel']}")
            ordered = {name: found[name] for name in (*self.releases, *found) if name in found}
            self.file.write_text(laid_out(ordered) + "\n", encoding="utf-8")
        return faults

    def _read(self, release: str) -> Json:
        if shutil.disk_usage(tempfile.gettempdir()).free < _ROOM:
            raise wheels.NotHad(f"{release}: less than {_ROOM >> 30} GiB are free for its wheel")
        name, stated = wheels.stated(release)
        with wheels.fetched(release) as wheel:
            if (wheel.name, wheels.sha256(wheel)) != (name, stated):
                raise wheels.NotHad(f"{release}: {wheel.name} is not the file the index states")
            said = self.described(wheels.sources(wheel))
        return {"wheel": name, "sha256": stated, **said}

    def news(self) -> int:
        """Read the newest release of the index; count those that say what none here says."""
        found, faults = self.kept(), 0
        known = [_content(said) for said in found.values()]
        names = sorted({release.partition("==")[0] for release in self.releases})
        for number, name in enumerate(names, 1):
            try:
                newest = f"{name}=={wheels.stated(name)[0].split('-')[1]}"
                is_new = newest not in found and _content(self._read(newest)) not in known
            except (wheels.NotHad, OSError, SyntaxError) as exc:
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


def laid_out(value: object, margin: str = "", taken: int = 0) -> str:
    """Write JSON with one line for whatever fits on it, after *taken* columns of a key."""
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
