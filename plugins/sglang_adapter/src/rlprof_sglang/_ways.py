"""By which way a replica is recorded: in its schedulers, or by SGLang's own profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof import CaptureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_sglang._engine import Engine
    from rlprof_sglang._options import SglangOptions


def way(options: SglangOptions, engine: Engine, tools: Mapping[str, Any]) -> str:
    """Choose; raise CaptureError where neither way is open."""
    inside = ""
    if options.needs_native:
        inside = f"{', '.join(options.needs_native)}: SGLang's own profiler does that"
    elif not tools:
        inside = "the config names no tool for them"
    elif not engine.facts.is_inside:
        inside = (
            "rlprof-sglang is not in them: install it there (SGLang 0.5.11 or later), launch with "
            "the environment that rlprof.launch gives, and let SGLANG_PLUGINS admit rlprof"
        )
    native = ""
    if tools and "torch" not in tools:
        native = f"it is torch's, and cannot stand for {', '.join(tools)}"
    if not inside and options.way != "native":
        return "worker"
    if not native and options.way != "worker":
        return "native"
    told = [f"in its schedulers: {inside}"] if inside and options.way != "native" else []
    told += [f"SGLang's own profiler: {native}"] if native and options.way != "worker" else []
    raise CaptureError(f"sglang: this engine cannot be recorded; {'; '.join(told)}")


def sleepless(engine: Engine) -> dict[str, str]:
    """Say that its schedulers spin while they have nothing to do, of which a trace is full."""
    if engine.facts.sleeps is not False:
        return {}
    return {
        "sleep_on_idle": "is off: with stacks a scheduler with nothing to do writes up to two "
        "million events a second; launch it with sleep_on_idle=True"
    }
