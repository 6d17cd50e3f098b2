"""Copies of an installed package with some names changed; all other files are links."""

from __future__ import annotations

import re
from pathlib import Path

import attrs


@attrs.frozen
class Edit:
    """One change of a package's sources."""

    files: str
    """A glob below the package."""
    old: str
    """A pattern of the original text."""
    new: str


def edited(package: Path, folder: Path, edits: list[Edit]) -> int:
    """Lay out *package* in *folder* with *edits* applied; return how many places were changed."""
    changed: dict[Path, str] = {}
    count = 0
    for edit in edits:
        for file in sorted(package.glob(edit.files)):
            text, times = re.subn(edit.old, edit.new, changed.get(file) or file.read_text())
            if times:
                changed[file] = text
                count += times
    _lay_out(package, folder / package.name, changed)
    return count


def _lay_out(source: Path, place: Path, changed: dict[Path, str]) -> None:
    """Link what *source* holds into *place*; only folders with a changed file are made anew."""
    place.mkdir(parents=True)
    for there in source.iterdir():
        here = place / there.name
        if there in changed:
            here.write_text(changed[there])
        elif there.is_dir() and any(there in file.parents for file in changed):
            _lay_out(there, here, changed)
        elif there.name != "__pycache__":
            here.symlink_to(there)
