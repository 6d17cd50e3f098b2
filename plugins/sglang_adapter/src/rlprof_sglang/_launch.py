"""What to launch an engine with, so that its schedulers can be recorded and its requests timed."""

from __future__ import annotations

import getpass
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError, Launch, safe_name
from rlprof_sglang._words import PLUGIN, SWITCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Target
    from rlprof_sglang._options import SglangOptions

_ONLY_TORCH = "SGLang's own profiler records torch only"


def check(options: SglangOptions, tools: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise one CaptureError with all options that cannot work on any engine."""
    faults = []
    others = [name for name in tools if name != "torch"]
    needs = ", ".join(options.needs_native)
    if options.way == "worker" and not tools:
        faults.append("way: worker records with the run's tools, and there is none; name one: "
                      "tool: torch")  # fmt: skip
    if options.way == "worker" and needs:
        faults.append(f"{needs}: SGLang's own profiler does that; leave out way: worker")
    if others and (options.way == "native" or needs):
        what = "way: native" if options.way == "native" else needs
        who = f"{', '.join(others)} need{'s' if len(others) == 1 else ''}"
        faults.append(f"{what}: {_ONLY_TORCH}; {who} way: worker")
    if options.contents is None and options.unbounded(tools.get("torch", {})) == "stack":
        faults.append(
            "iterations: needs {count: N}, because tools.torch.contents has stack: an idle "
            "scheduler writes up to two million events a second"
        )
    if faults:
        raise CaptureError("; ".join(faults))


def engine_launch(options: SglangOptions) -> Launch:
    """Return what an engine must be launched with."""
    arguments: dict[str, Any] = {}
    env: dict[str, str] = {SWITCH: "1"}  # also for the guard of SGLang's own profiler
    allowed = os.environ.get("SGLANG_PLUGINS")
    if allowed and PLUGIN not in map(str.strip, allowed.split(",")):
        env["SGLANG_PLUGINS"] = f"{allowed},{PLUGIN}"
    if options.requests:
        arguments["enable_metrics"] = True  # else SGLang does not report when a request waited
    return Launch(env=env, engine_args=arguments)


def server_args(launch: Launch) -> list[str]:
    """Return the engine arguments of *launch* as the command line of SGLang's server."""
    found = []
    for name, value in launch.engine_args.items():
        flag = "--" + name.replace("_", "-")
        if value is not False:
            found += [flag] if value is True else [flag, str(value)]
    return found


def profiler_dir(options: SglangOptions, target: Target) -> Path:
    """Return the folder that SGLang's own profiler writes below; this needs no engine."""
    if options.profiler_dir is not None:
        return Path(options.profiler_dir).expanduser().absolute()
    name = f"{safe_name(target.role)}_{target.rank}"
    return Path(tempfile.gettempdir(), f"rlprof-sglang-{safe_name(getpass.getuser())}", name)
