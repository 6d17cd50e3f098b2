"""`rlprof export RUN --to NAME`: make a timeline, report or database of a run."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.errors import RlprofError
from rlprof_cli._loose import loose_files
from rlprof_cli._parser import page
from rlprof_cli._part import add_part, folder_of, part_of, typed
from rlprof_cli._signals import ended_tidily
from rlprof_cli.arguments import add_run, names
from rlprof_cli.table import size
from rlprof_run import read, unmatched, youngest

if TYPE_CHECKING:
    import argparse
DEFAULT = "timeline"
"""The exporter, if none is named."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CANNOT = {
    "render": "cannot read a run, only files that rlprof did not make",
    "render_files": "cannot read files that rlprof did not make",
}
"""Hook → the error of an exporter without it."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "export",
        help="make a timeline or a report of a run",
        description="Exporters read a run and write into RUN/exports; what they make of a part "
        "of it gets a folder of its own there, such as RUN/exports/step-3. `rlprof plugins` lists "
        "the installed exporters. RUN may also be a trace file of another profiler, or a folder of "
        "them, if the exporter can read these.",
    )
    add_run(parser, ", or a trace file or folder of another profiler")
    parser.add_argument(
        "--to", action="extend", type=names, metavar="NAME[,NAME]",
        help=f"exporters; you may repeat it (default: {DEFAULT})",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="write here (default: RUN/exports)")
    add_part(parser)
    parser.add_argument(
        "--align", choices=("collectives", "wall"),
        help="how a timeline puts the hosts on one clock: `collectives` moves each host so that "
        "its collectives end with those of the others; `wall` moves none (default: move a host "
        "only if its collectives show that its clock is wrong, and no driver of a fleet has "
        "measured it)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the exporters one by one; print what they wrote."""
    asked = dict.fromkeys(args.to or [DEFAULT])
    chosen = [(name, plugins.load("exporter", name)) for name in asked]
    path, out = youngest(args.path), Path(args.out) if args.out else None
    files = loose_files(path, out)
    given: dict[str, Any]
    if files:
        verb, given, home = "render_files", {"files": files}, path
        if typed(args):
            raise RlprofError(
                f"{path}: is not a run, so no part can be selected; drop {', '.join(typed(args))}"
            )
    else:
        verb, recorded = "render", read(path)
        home = recorded.path
        part = part_of(args, recorded.opened_ns)
        given = {"run": recorded.only(part)}
        for words in unmatched(recorded, part):
            print(f"rlprof: {words}", file=sys.stderr)
    out = out or _exports_of(home if home.is_dir() else home.parent) / folder_of(args)
    hooks = [(name, hook) for name, plugin in chosen if (hook := _hook(verb, name, plugin))]
    failed = len(hooks) < len(chosen)
    if hooks:
        _make(out)
    if not files and recorded.is_running:
        print("the run is live; this shows what it has recorded so far")
    for name, hook in hooks:
        began = time.monotonic()
        try:
            with ended_tidily():
                written = list(hook(**given, out=out, options={"align": args.align}) or ())
        except Exception as exc:  # code of a plugin; the exporters after it still run
            print(f"rlprof: {name}: {_why(exc, out)}", file=sys.stderr)
            failed = True
            continue
        took = time.monotonic() - began
        for file in written:
            print(f"{name}: {file} ({size(Path(file).stat().st_size)}, {took:.1f} s)")
        if not written:
            print(f"{name}: wrote nothing")
    if failed:
        print(page("export"), file=sys.stderr)
        return 1
    return 0


def _hook(verb: str, name: str, plugin: type[Any]) -> Any:
    """Return the hook of an instance of *plugin*, or print why there is none and return None."""
    hooks = plugins.hooks(plugin())
    if verb in hooks:
        return getattr(hooks, verb)
    print(f"rlprof: {name}: {_CANNOT[verb]}", file=sys.stderr)
    return None


def _why(exc: Exception, out: Path) -> str:
    """Describe what was wrong; for a full disk also where, and what to do."""
    if isinstance(exc, OSError) and exc.errno in _NO_ROOM:
        why = os.strerror(exc.errno).lower()
        return f"{out}: cannot be written to: {why}; name a folder that has room: --out DIR"
    return str(exc) if isinstance(exc, RlprofError) else f"{type(exc).__name__}: {exc}"


def _make(out: Path) -> None:
    """Create the folder; if that fails, raise an error with what to do."""
    other = "name a folder that you can write to: --out DIR"
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        why = (exc.strerror or str(exc)).lower()
        raise RlprofError(f"{out}: cannot be made: {why}; {other}") from exc
    if not os.access(out, os.W_OK | os.X_OK):  # also what is mounted read-only
        raise RlprofError(f"{out}: cannot be written to; {other}")


def _exports_of(home: Path) -> Path:
    """Return the folder for exports of a run; refuse a link that leads out of the run."""
    out = home / "exports"
    if not out.resolve().is_relative_to(home.resolve()):
        raise RlprofError(
            f"{out}: is a link out of the run folder, to {out.resolve()}; if you mean that folder, "
            "name it with --out DIR"
        )
    return out
