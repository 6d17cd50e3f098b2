"""`rlprof export RUN --to NAME`: turn a recorded run into something to look at."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.cli._table import size
from rlprof.errors import RlprofError
from rlprof.rundir import read

if TYPE_CHECKING:
    import argparse


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "export",
        help="make a timeline or a report of a run",
        description="Let exporters read RUN and write into RUN/exports. `rlprof plugins` lists "
        "the exporters that are installed.",
    )
    parser.add_argument("path", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--to", default="timeline", metavar="NAME[,NAME]", help="exporters (default: timeline)"
    )
    parser.add_argument("--out", metavar="DIR", help="write here (default: RUN/exports)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the exporters one by one; print what they wrote."""
    chosen = [(name, plugins.load("exporter", name)) for name in args.to.split(",")]
    recorded = read(args.path)
    out = Path(args.out) if args.out else _exports_of(recorded.path)
    other = "name a folder that you can write to: --out DIR"
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        why = (exc.strerror or str(exc)).lower()
        raise RlprofError(f"{out}: cannot be made: {why}; {other}") from exc
    if not os.access(out, os.W_OK | os.X_OK):  # also what is mounted read-only
        raise RlprofError(f"{out}: cannot be written to; {other}")
    if recorded.is_running:
        print("the run is still going on; this shows what is there now")
    failed = False
    for name, plugin in chosen:
        began = time.monotonic()
        try:
            written = plugins.hooks("exporter", plugin()).export(run=recorded, out=out) or []
        except Exception as exc:  # a stranger's code; the exporters after it still run
            print(f"rlprof: {name}: {type(exc).__name__}: {exc}", file=sys.stderr)
            failed = True
            continue
        took = time.monotonic() - began
        for file in written:
            print(f"{name}: {file} ({size(Path(file).stat().st_size)}, {took:.1f} s)")
        if not written:
            print(f"{name}: wrote nothing")
    return 1 if failed else 0


def _exports_of(run: Path) -> Path:
    """Return the run's own folder for exports; a link that leads elsewhere is somebody's trap."""
    out = run / "exports"
    if not out.resolve().is_relative_to(run.resolve()):
        raise RlprofError(
            f"{out}: is a link out of the run folder, to {out.resolve()}; name that with --out DIR "
            "if it is meant"
        )
    return out
