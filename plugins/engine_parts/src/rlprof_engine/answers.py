"""The answers of an engine's processes to an order, and the notes made from them."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlprof import Workers


@attrs.define
class EngineRecording:
    """What was applied in one window, and what was not."""

    applied: dict[str, Any] = attrs.field(factory=dict)
    unsupported: dict[str, str] = attrs.field(factory=dict)


def choose(
    engine: str, way: str, tools: Collection[str], inside: tuple[str, str], native: tuple[str, str]
) -> str:
    """Choose the way to record with *tools*; raise CaptureError if neither is possible.

    *way*: the option. *inside* and *native*: the name of each way, and why this engine lacks it.
    """
    inside_why = inside[1] if tools else "the config names no tool for them"
    native_why = native[1]
    if tools and "torch" not in tools:
        native_why = native_why or f"it records torch only, and cannot replace {', '.join(tools)}"
    if not inside_why and way != "native":
        return "worker"
    if not native_why and way != "worker":
        return "native"
    reasons = [f"in its {inside[0]}: {inside_why}"] if inside_why and way != "native" else []
    reasons += [f"{native[0]}: {native_why}"] if native_why and way != "worker" else []
    raise CaptureError(f"{engine}: this engine cannot be recorded; {'; '.join(reasons)}")


def answers_in(answers: list[dict[str, Any]], state: str, nobody: str) -> list[dict[str, Any]]:
    """Return the answers in *state*; raise CaptureError with the reasons if all failed.

    With data parallelism, some engines return the answers of one replica only. The chosen ranks may
    be in another replica, so "not chosen" is not a failure. *nobody* begins the error, e.g. "vllm:
    no worker records".
    """
    found = [answer for answer in answers if answer["state"] == state]
    if not found and not any(answer["state"] == "not chosen" for answer in answers):
        whys = {str(one.get("why") or one["state"]) for one in answers} or {"no answer"}
        raise CaptureError(f"{nobody}: {'; '.join(sorted(whys))}")
    return found


def fewer(options: Mapping[str, Any], ran: Iterable[tuple[str, int | None]]) -> list[str]:
    """Name the processes that recorded fewer engine steps than `iterations.count` of *options*.

    *ran*: each process and its number of steps; None: the number is unknown.
    """
    count = (options.get("iterations") or {}).get("count")
    return [
        f"{who}: {steps} of the {count} engine steps asked for; the window ended before the others"
        for who, steps in ran
        if count is not None and steps is not None and 0 < steps < count
    ]


def unseen(steps: Collection[int], begun: int) -> list[str]:
    """Report that *begun* requests got their first token in the window, but no step was seen.

    *steps*: the number that each process recorded in the window.
    """
    if not begun or not steps or any(steps):
        return []
    what = f"{begun} requests were answered, but no engine step was seen"
    return [f"{what}; rlprof does not know how this release runs its steps"]


def other_number(there: int, workers: Workers, word: str) -> dict[str, str]:
    """Report that an engine of *there* processes was attached with another number of ranks.

    *word*: the engine's name for its processes.
    """
    given = len(workers.ranks)
    if given in (0, there):
        return {}
    return {"attach: ranks": f"the engine has {there} {word}, and was attached with {given} ranks"}


def beyond_native(workers: Workers, word: str, profiler: str) -> dict[str, str]:
    """Name the tools and the choice of ranks that an engine's own torch profiler cannot provide.

    It always records all ranks. *word*: the engine's name for its processes.
    """
    found = {
        name: f"needs rlprof in the {word}; {profiler} records torch only"
        for name in workers.tools
        if name != "torch"
    }
    if workers.ranks and len(workers.chosen) < len(workers.ranks):
        found["ranks"] = f"{profiler} records all {word} of an engine"
    return found


def version_of(package: str) -> str:
    """Return the version of an engine's package that this process has imported; else empty."""
    return str(getattr(sys.modules.get(package), "__version__", ""))


def parameters_of(function: Any) -> tuple[str, ...]:
    """Name the parameters of *function*, without `*args` and `**kwargs`."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(one.name for one in found if one.kind not in kinds)
