"""`rlprof doctor [FILE]`: what will and will not work here, reported before a run."""

from __future__ import annotations

import argparse
import socket
import sys
from contextlib import suppress
from typing import Any, get_args

import attrs

from rlprof.rundir import as_json
from rlprof_cli.arguments import add_json, duration
from rlprof_cli.doctor._examine import examine
from rlprof_cli.doctor._finding import Level
from rlprof_cli.table import is_quiet, plain

_DESCRIPTION = """\
Report before a run what will and will not work: on this host, in this environment, with the
variables of this shell. Run it as you will run training: in the same container, as the same user.

With FILE, the command checks the config, and every tool of its roles records a dry window with
the options in FILE. Without FILE, every installed tool does so with its default options. Each tool
runs in a child process with a deadline; if it hangs or crashes, that is reported and harms nothing
else. The command also examines Python and the plugins, the folders a run writes to, other
profilers, extensions that torch loads by itself, clocks and limits. An engine is loaded and
configured, but not started.
"""

_EPILOG = """\
each line is one finding, `where: what is wrong; what to do`:
  ok    nothing to do
  warn  a run works, with less or at a cost; a tool that no config asks for cannot record here
  BAD   something the config asks for will not work here, or would harm the run

exit code: 1 if anything is BAD, else 0

  rlprof doctor                            will anything installed work here?
  rlprof doctor profile.yaml               will this config work here?
  rlprof doctor profile.yaml --role actor  ... in a process of this role?
"""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="report before a run what will and will not work here",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="a YAML file (default: all that is installed)"
    )
    parser.add_argument(
        "--role",
        action="append",
        metavar="ROLE",
        help="test only the tools of this role (may be repeated; default: all roles)",
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        default=120.0,
        metavar="S",
        help="seconds each tool may take before it counts as hanging (default: 120)",
    )
    add_json(parser, "a list of the findings, when all are known,")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings as they come; return 1 if any is BAD."""
    if not args.json:
        print(f"on {socket.gethostname()}, with {sys.executable}\n", flush=True)
    findings = []
    found = examine(args.file, roles=args.role, timeout_s=args.timeout, progress=_progress)
    try:
        for finding in found:
            findings.append(finding)
            _progress("")
            if not args.json:
                print(f"{finding.level:<4}  {plain(str(finding), 1000)}", flush=True)
    finally:  # also on Ctrl-C
        _progress("")
    levels = [finding.level for finding in findings]
    values = map(attrs.asdict, findings)
    print(as_json([*values], indent=2) if args.json else f"\n{_verdict(levels)}")
    return int("BAD" in levels)


def _verdict(found: list[Level]) -> str:
    numbers = [f"{found.count(level)} {level}" for level in get_args(Level) if level in found]
    words = "ready, except for the findings above" if "warn" in found else "ready"
    if "BAD" in found:
        words = "not everything will work here"
    return f"{words}: {', '.join(numbers)}"


def _progress(doing: str) -> None:
    """Show on a terminal what the command waits for, on a line that is erased later."""
    if sys.stderr.isatty() and not is_quiet():
        with suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{plain(doing, 75)}")
            sys.stderr.flush()
