"""What to launch an engine with, so that its schedulers can be recorded and its requests timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof import CaptureError, Launch
from rlprof_engine.launching import admitted, faults_of
from rlprof_sglang._words import PLUGINS, SWITCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_sglang._options import SglangOptions


def check(options: SglangOptions, tools: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise one CaptureError with all options that cannot work on any engine."""
    needs = ", ".join(options.needs_native)
    faults = list(faults_of(options.way, needs, "SGLang's own profiler", tools))
    is_bounded = options.iterations is not None and options.iterations.count is not None
    if "stack" in tools.get("torch", {}).get("contents", ()) and not is_bounded:
        faults.append(
            "iterations: needs {count: N}, because tools.torch.contents has stack: an idle "
            "scheduler writes up to two million events a second"
        )
    if faults:
        raise CaptureError("; ".join(faults))


def engine_launch(options: SglangOptions) -> Launch:
    """Return what an engine must be launched with."""
    arguments: dict[str, Any] = {}
    # Also for native windows, in which `_guard` keeps the schedulers alive.
    env = {SWITCH: "1", **admitted(PLUGINS, empty_is_all=True)}
    if options.requests:
        arguments["enable_metrics"] = True  # else SGLang does not report when a request waited
    return Launch(env=env, engine_args=arguments)
