"""The command line of the launcher, and how the tool writes it."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

import attrs

from rlprof_nsys._mark import DOMAIN, RANGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Launch, Target
    from rlprof_nsys._options import NsysOptions

# Not `-m`: Python would search the current folder first, and could import a user's `json.py`.
_BOOT = """\
import sys; sys.path.append(sys.path.pop(0)); \
from rlprof_nsys.launcher import main; main(sys.argv[1:])"""
LAUNCHER = (sys.executable, "-c", _BOOT)
"""The command that starts the launcher, without its arguments."""


@attrs.frozen
class Asked:
    """The launcher's arguments."""

    name: str
    """A readable part of the session's name: `actor-0`."""
    nsys: str = "nsys"
    trace: tuple[str, ...] = ()
    options: Mapping[str, str] = attrs.field(factory=dict)
    env: tuple[str, ...] | None = None
    """The environment variables that the program may see; None: all."""
    window: str = ""
    """The range that delimits a window, in the form of `--nvtx-capture`; empty: none."""

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments in the form that `read_arguments` reads."""
        env = () if self.env is None else ("--env=", *(f"--env={name}" for name in self.env))
        return (
            f"--name={self.name}",
            f"--nsys={self.nsys}",
            f"--trace={','.join(self.trace)}",
            *(f"--option={name}={value}" for name, value in self.options.items()),
            *env,
            *((f"--window={self.window}",) if self.window else ()),
            "--",
        )


def read_arguments(argv: list[str]) -> tuple[Asked, list[str]]:
    """Return the launcher's arguments and the program's command."""
    parser = argparse.ArgumentParser(
        prog="rlprof_nsys.launcher",
        usage="%(prog)s [options] -- COMMAND...",
        description="Run COMMAND idle under nsys, so that windows of it can be recorded.",
    )
    parser.add_argument("--name", default="process", help="part of the session's name")
    parser.add_argument(
        "--nsys", default="nsys", help="the nsys program: its path, or a name on PATH"
    )
    parser.add_argument("--trace", default="nvtx,cuda,osrt", help="the APIs that nsys traces")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--env", action="append", metavar="NAME", help="let COMMAND see this variable"
    )
    parser.add_argument("--window", default="", metavar="RANGE@DOMAIN")
    cut = argv.index("--") if "--" in argv else len(argv)
    command = argv[cut + 1 :]
    given = parser.parse_args(argv[:cut])
    if not command:
        parser.error("no COMMAND to run; write it after --")
    asked = Asked(
        name=given.name,
        nsys=given.nsys,
        trace=tuple(filter(None, given.trace.split(","))),
        options=dict(pair.partition("=")[::2] for pair in given.option),
        env=None if given.env is None else tuple(filter(None, given.env)),
        window=given.window,
    )
    return asked, command


def launch_of(target: Target, options: NsysOptions) -> Launch | None:
    """Return the command that goes before the program's command."""
    from rlprof import CaptureError, Launch  # the launcher also imports this file, without core

    if options.mode == "attached":
        if options.env is not None:
            raise CaptureError(
                "env: has no effect in mode attached, where you start the process; leave it out"
            )
        return None
    for name in ("sample", "cpuctxsw"):
        if options.collecting[name] not in ("none", "system-wide"):
            raise CaptureError(
                f"options.{name}: nsys samples only processes that it started itself, and it does "
                "not start the program; say system-wide, or start the program yourself and use "
                "mode: attached"
            )
    if options.mode == "range" and options.range == "nvtx" and "nvtx" not in options.trace:
        raise CaptureError("range: nvtx needs nvtx in trace, because nsys must see the range")
    rank = target.rank if target.replica is None else target.replica
    asked = Asked(
        name=f"{target.role}-{rank}",
        nsys=options.nsys,
        trace=options.trace,
        options=options.options,
        env=options.env,
        window=f"{RANGE}@{DOMAIN}" if options.mode == "range" and options.range == "nvtx" else "",
    )
    prefix = (*LAUNCHER, *asked.arguments())
    return Launch(
        argv_prefix=prefix,
        runtime_env={"py_executable": shlex.join([*prefix, sys.executable])},
    )
