"""What the tool and the launcher pass to each other.

The tool passes `Asked`: one argument, before the command of the program. The launcher passes
`Mark`: one variable of the program's environment.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Launch, Target
    from rlprof_nsys._options import NsysOptions

# Not `-m`: Python would search the current folder first, and could import a user's `json.py`.
_BOOT = """\
import sys; sys.path.append(sys.path.pop(0)); \
from rlprof_nsys.launcher import main; main(sys.argv[1:])"""
LAUNCHER = (sys.executable, "-c", _BOOT)
"""The command that starts the launcher, without its argument."""
MARK = "NSYS_RLPROF"
"""The variable; it does not begin with RLPROF, because such variables name a run."""
DOMAIN = "rlprof"
"""The NVTX domain of the ranges."""
RANGE = "rlprof window"
"""The range that delimits a window in range mode."""


@attrs.frozen
class Asked:
    """The launcher's argument."""

    name: str
    """A readable part of the session's name: `actor-0`."""
    nsys: str = "nsys"
    trace: tuple[str, ...] = ()
    options: Mapping[str, str] = attrs.field(factory=dict)
    env: tuple[str, ...] | None = None
    """The environment variables that the program may see; None: all."""
    window: str = ""
    """The range that delimits a window, in the form of `--nvtx-capture`; empty: none."""

    @classmethod
    def read(cls, text: str) -> Asked:
        """Read the launcher's first argument; raise ValueError if it is none of ours."""
        given = json.loads(text)
        names = None if given["env"] is None else tuple(given["env"])
        return cls(**{**given, "trace": tuple(given["trace"]), "env": names})

    def text(self) -> str:
        """Return the launcher's first argument."""
        return json.dumps(attrs.asdict(self))


@attrs.frozen
class Mark:
    """How the program was launched."""

    session: str = ""
    """The session of `nsys launch`; empty: the program runs unprofiled."""
    nsys: str = ""
    folder: str = ""
    """The launcher's folder, which is also TMPDIR of nsys."""
    trace: str = ""
    """The APIs traced, from the arguments of `nsys launch`."""
    asked: Mapping[str, Any] = attrs.field(factory=dict)
    """The options at launch: `trace`, `env`, `options`."""
    why: str = ""
    """Why the program runs unprofiled."""

    def text(self) -> str:
        """Return the value of the variable."""
        return json.dumps(attrs.asdict(self))


def read_mark(environ: Mapping[str, str]) -> Mark | None:
    """Read the mark; None: no launcher started this process."""
    try:
        return Mark(**json.loads(environ[MARK]))
    except (KeyError, ValueError, TypeError):
        return None


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
    prefix = (*LAUNCHER, asked.text())
    return Launch(
        argv_prefix=prefix,
        runtime_env={"py_executable": shlex.join([*prefix, sys.executable])},
    )
