"""`rlprof fetch URL`: bring a run home from a bucket."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import RunError
from rlprof_bucket.stored import Stored

if TYPE_CHECKING:
    import argparse


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "fetch",
        help="bring a run home from a bucket",
        description="Copy a run from a bucket, such as s3://bucket/profiles/RUN, into a local "
        "folder; then every other command works. URL may also be that of a folder of runs: its "
        "latest run is copied. Run it again on a live run to get new data.",
    )
    parser.add_argument("url", metavar="URL", help="a run, or a folder of runs")
    parser.add_argument(
        "--out", default="outputs/profile", metavar="DIR", help="where to (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy the files that are new; print where the run is."""
    stored = run_at(args.url)
    home = Path(args.out) / stored.url.rpartition("/")[2]
    if home.name.startswith("attempt_"):
        home = Path(args.out).joinpath(*stored.url.split("/")[-2:])
    count, files = 0, stored.files()
    for name, size in files.items():
        file = home / name
        if not file.resolve().is_relative_to(home.resolve()):
            raise RunError(f"{stored.url}: the name {name!r} leads out of {home}; it is not copied")
        if not file.exists() or file.stat().st_size != size:
            stored.get(name, file)
            count += 1
            if sys.stderr.isatty() and not getattr(args, "quiet", False):
                print(f"\rfetched {count} files", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty() and count:
        print(file=sys.stderr)
    print(f"{home}: {count} of {len(files)} files were new\nlook at it with: rlprof why {home}")
    return 0


def run_at(url: str) -> Stored:
    """Return the run at *url*, or the latest of the runs in it; raise RunError if there is none."""
    stored = Stored(url)
    names = stored.names()
    if "run.json" in names:
        return stored
    opened = {}
    for name in names:
        header = stored.read(f"{name}/run.json") if not name.startswith(".") else None
        with suppress(ValueError, KeyError, TypeError, RecursionError):  # somebody else's run.json
            opened_ns = json.loads(header or "null")["owner"]["opened_ns"]
            if isinstance(opened_ns, int):
                opened[opened_ns] = name
    if not opened:
        raise RunError(f"{url}: holds no run; name a run, or a folder of runs")
    return Stored(f"{stored.url}/{opened[max(opened)]}")
