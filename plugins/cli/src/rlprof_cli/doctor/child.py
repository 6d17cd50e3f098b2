"""The child process: called with FD JOB, it does one job, once.

The result of a job goes to the file descriptor FD as JSON. An exception ends the process; the
parent reads the traceback, and from `faulthandler` where the process hung or crashed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.config import Limits, advice_of, check_config, merge_launches
from rlprof.errors import ConfigError, PluginError
from rlprof_cli import offers
from rlprof_cli._signals import heed_interrupts
from rlprof_cli.doctor import _folders

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.answers import Advice
    from rlprof.config import ToolUse

_BATCHES, _ROUNDS, _BATCH_S = 20, 50, 0.01
"""The work of a dry window: mini-batches, with the sample of the tool or a duration for each."""


def check(config: Any, roles: list[str] | None) -> dict[str, Any]:
    """Load and configure the plugins of *roles*, as at launch.

    Return the faults, or the needs of the plugins and what they say about this host.
    """
    try:
        checked, tools = check_config(config, roles=roles)
    except ConfigError as exc:
        return {"faults": list(exc.faults), "launches": {}, "advice": []}
    launches = {
        role: attrs.asdict(merge_launches({use.name: use.launch for use in uses}))
        for role, uses in tools.items()
    }
    advice = [
        (f"roles.{role}: {each.kind} {each.name}", attrs.asdict(one))
        for role, uses in tools.items()
        for use in uses
        for each in (use, *use.inside)
        for one in _on_host(each, checked.limits)
        if one.level != "note"
    ]
    return {"faults": [], "launches": launches, "advice": advice}


def _on_host(use: ToolUse, limits: Limits) -> tuple[Advice, ...]:
    return advice_of(
        use.plugin, use.options, limits, use.asked_inside, asked=use.asked, on_host=True
    )


def load(kind: plugins.Kind, name: str) -> str:
    """Import a plugin; return its faults."""
    try:
        plugins.load(kind, name)
    except PluginError as exc:
        return str(exc)
    return ""


def advise(name: str) -> list[dict[str, str]]:
    """Ask the plugin of an engine what the installed version can do."""
    plugin = plugins.load("engine", name)
    found = advice_of(plugin, None, Limits(), {}, on_host=True)
    return [attrs.asdict(one) for one in found]


def window(config: dict[str, Any], role: str, tool: str) -> dict[str, Any]:
    """Record one window of a little work, as a run would; its run folder has the outcome."""
    import rlprof

    work = _work(getattr(plugins.load("tool", tool), "sample", None))
    error = ""
    began = time.monotonic()
    with rlprof.open(config, role=role, rank=0, world_size=1) as prof:
        opened_s = time.monotonic() - began
        prof.step(1)
        with prof.phase("doctor"):
            for _ in range(_BATCHES):
                try:
                    work()
                except Exception as exc:  # a tool's sample; one that is refused cannot work, either
                    error = f"{type(exc).__name__}: {exc}"
                prof.minibatch()
    return {"opened_s": round(opened_s, 6), "sample": error}


def _work(sample: Callable[[int], object] | None) -> Callable[[], object]:
    """Return the work of a mini-batch: the sample of the tool, or some arithmetic."""
    if sample is not None:
        return partial(sample, _ROUNDS)

    def keep_busy() -> None:
        end = time.monotonic() + _BATCH_S
        while time.monotonic() < end:
            sorted(range(1000), key=lambda number: -number)

    return keep_busy


def folder(look: str, **args: Any) -> list[dict[str, str]]:
    """Try the folder of runs, or that for raw data."""
    return [attrs.asdict(finding) for finding in getattr(_folders, look)(**args)]


def backends() -> list[str]:
    """Name the entry points that `import torch` loads, with their distributions."""
    from importlib import metadata

    entries = metadata.entry_points(group="torch.backends")
    return [f"{entry.name} ({entry.dist.name if entry.dist else '?'})" for entry in entries]


def import_torch() -> str:
    """Import torch, as every training process does."""
    import torch

    return str(torch.__version__)


_ALL = (check, load, offers.drives, advise, window, folder, backends, import_torch)
_JOBS: dict[str, Callable[..., Any]] = {job.__name__: job for job in _ALL}


def main(argv: list[str]) -> int:
    """Do one job; on a timeout, print a traceback of where it is."""
    heed_interrupts()
    result, asked = int(argv[0]), json.loads(argv[1])
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.01, asked["dump_at"] - time.monotonic()))
    answer = _JOBS[asked["job"]](**asked["args"])
    os.write(result, json.dumps(answer).encode())
    return 0
