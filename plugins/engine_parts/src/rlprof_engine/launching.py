"""What both engines are launched with, and which options cannot work on any engine."""

from __future__ import annotations

import getpass
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlprof import Launch, Target


PLUGIN = "rlprof"
"""Our name among the plugins of an engine."""


def admitted(variable: str, *, empty_is_all: bool = False) -> dict[str, str]:
    """Add our plugin to an environment variable, if that names the plugins to load without ours."""
    allowed = os.environ.get(variable)
    if allowed is None or (empty_is_all and not allowed) or PLUGIN in allowed.split(","):
        return {}
    return {variable: ",".join(filter(None, [*allowed.split(","), PLUGIN]))}


def server_args(launch: Launch) -> list[str]:
    """Return the engine arguments of *launch* as the command line of the engine's server."""
    found = []
    for name, value in launch.engine_args.items():
        if value is False:
            continue  # the server's default
        found.append("--" + name.replace("_", "-"))
        if value is not True:
            found.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return found


def profiler_dir(engine: str, asked: str | None, target: Target) -> Path:
    """Return the folder that the own profiler of *engine* writes to; this needs no engine."""
    if asked is not None:
        return Path(asked).expanduser().absolute()
    name = f"{safe_name(target.role)}_{target.rank}"
    return Path(tempfile.gettempdir(), f"rlprof-{engine}-{safe_name(getpass.getuser())}", name)


def faults_of(way: str, needs: str, profiler: str, tools: Iterable[str]) -> Iterator[str]:
    """Name what cannot work: *way* with *tools*, or with options that only *profiler* carries out.

    *needs*: these options; empty: none.
    """
    tools = list(tools)
    others = [name for name in tools if name != "torch"]
    if way == "worker" and not tools:
        yield "way: worker records with the run's tools, and there is none; name one: tool: torch"
    if way == "worker" and needs:
        yield f"{needs}: {profiler} does that; leave out way: worker"
    if others and (way == "native" or needs):
        what = "way: native" if way == "native" else needs
        who = f"{', '.join(others)} need{'s' if len(others) == 1 else ''}"
        yield f"{what}: {profiler} records torch only; {who} way: worker"
