"""What of the options cannot work on this host, and what records: before there is an engine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_engine.beforehand import cannot_be_written
from rlprof_engine.beforehand import who_records as said_of
from rlprof_sglang._facts import Facts
from rlprof_sglang._installed import sources_here
from rlprof_sglang._refusals import harm_of
from rlprof_sglang._request import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_sglang._options import SglangOptions


def who_records(options: SglangOptions, tools: Mapping[str, Mapping[str, Any]]) -> str:
    """Say it."""
    return said_of(
        tools,
        way=options.way,
        is_native=bool(options.needs_native),
        profiler="SGLang's own profiler",
        word="schedulers",
    )


def misfits(
    options: SglangOptions, tools: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | tuple[str, str]]:
    """Judge what SGLang's own profiler is asked, as a window would; it may be for another host."""
    if options.way == "worker":
        return {}
    found: dict[str, str | tuple[str, str]] = {}
    is_certain = options.way == "native" or bool(options.needs_native) or not tools
    if options.profiler_dir is not None:
        why = cannot_be_written(Path(options.profiler_dir).expanduser().absolute())
        if why:
            where = "where SGLang's own profiler stands for the tools, no window opens"
            found["profiler_dir"] = why if is_certain else ("warn", f"{why}: {where}")
    if sources_here() is not None and find_spec("torch") is not None:
        found |= _of_device(options, tools.get("torch", {}))
    return found


def _of_device(
    options: SglangOptions, torch: Mapping[str, Any]
) -> dict[str, str | tuple[str, str]]:
    """Say what cannot be recorded on the device that an engine would have here."""
    request = Request(options, Facts("", device=_device(), is_inside=True), torch)
    advice = "choose others, or run this where the engine runs"
    try:
        why = harm_of(list(request.activities()))
    except CaptureError as exc:
        why = str(exc).removeprefix("sglang: activities: ")
    if why:
        return {"activities": f"{why.removeprefix('activities: ')}; {advice}"}
    return {
        what: ("warn", f"{how}: it is left out; {advice}")
        for what, how in request.unsupported.items()
    }


def _device() -> str:
    """Name the device as SGLang would choose it."""
    import torch

    for name in ("cuda", "npu", "xpu"):
        part = getattr(torch, name, None)
        if part is not None and part.is_available():
            return name
    return "cpu"
