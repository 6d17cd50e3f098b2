"""`rlprof send RUN URL`: copy a local run into a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_bucket.copier import changed
from rlprof_bucket.stored import Stored
from rlprof_run import read

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "send",
        help="copy a local run into a bucket",
        description="Copy the run in the folder RUN into a bucket, as s3://bucket/profiles/RUN. "
        "Use it for a run that you keep; or, after rlprof salvage, for what a killed process left "
        "on its host.",
    )
    parser.add_argument("path", metavar="RUN", help="a run folder")
    parser.add_argument("url", metavar="URL", help="the run's own place in the bucket")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy all files; print where they are."""
    path: Path = read(args.path).path
    stored = Stored(args.url)
    names = [name for name, _ in changed(path, {})]
    for name in names:
        stored.put(path / name, name)
    print(f"{stored.url}: {len(names)} files\nbring it home with: rlprof fetch {stored.url}")
    return 0
