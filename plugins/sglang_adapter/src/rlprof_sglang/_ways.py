"""Chooses how to record a replica: in its schedulers, or by SGLang's own profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_engine.answers import choose
from rlprof_sglang._words import SWITCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_sglang._facts import Facts
    from rlprof_sglang._options import SglangOptions
    from rlprof_sglang._server import Engine

NATIVE = "SGLang's own profiler"
_NOT_THERE = (
    "rlprof-sglang is not in its schedulers: install it there, start the engine with "
    f"{SWITCH}=1 in its environment (rlprof.launch gives it), and let SGLANG_PLUGINS admit rlprof"
)


def _not_there(facts: Facts) -> str:
    """Say why rlprof cannot record in the schedulers, and what to do."""
    if not facts.lacks:
        return _NOT_THERE
    return (
        f"this SGLang has no {', '.join(facts.lacks)}: install an rlprof-sglang that knows release "
        f"{facts.version or 'of this engine'}"
    )


def way(options: SglangOptions, engine: Engine, tools: Mapping[str, Any]) -> str:
    """Choose the way; raise CaptureError if neither is possible."""
    inside = ""
    if options.needs_native:
        inside = f"{', '.join(options.needs_native)}: SGLang's own profiler does that"
    elif not tools:
        inside = "the config names no tool for them"
    elif not engine.facts.is_inside:
        inside = _not_there(engine.facts)
    native = ""
    if tools and "torch" not in tools:
        native = f"it records torch only, and cannot replace {', '.join(tools)}"
    both = ("schedulers", inside), (NATIVE, native)
    return choose("sglang", options.way, *both)


def unasked(options: SglangOptions, engine: Engine, tools: Mapping[str, Any]) -> dict[str, str]:
    """Report that SGLang's profiler records instead of the tools, though nobody asked for it."""
    if options.way != "auto" or options.needs_native or not tools or engine.facts.is_inside:
        return {}
    return {"tool: torch": f"SGLang's own profiler records, unguarded; {_not_there(engine.facts)}"}
