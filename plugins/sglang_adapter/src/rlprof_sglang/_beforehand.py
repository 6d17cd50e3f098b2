"""Advice on the options before there is an engine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlprof import Advice, CaptureError
from rlprof_engine.beforehand import cannot_be_written, who_records
from rlprof_sglang._facts import Facts
from rlprof_sglang._installed import capabilities, newer_than_known, sources_here
from rlprof_sglang._refusals import harm_of
from rlprof_sglang._request import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_sglang._options import SglangOptions

_STANDS_IN = "if SGLang's own profiler stands in for the tools, no window opens"


def advise(
    options: SglangOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; on the engine's host, also say what cannot work there.

    Without *options*, list what the installed SGLang can do.
    """
    if options is None:
        return capabilities()
    records = Advice(_records(options, tools), about="records")
    return [records, *((*_misfits(options, tools), *newer_than_known()) if on_host else ())]


def _records(options: SglangOptions, tools: Mapping[str, Mapping[str, Any]]) -> str:
    return who_records(
        tools,
        way=options.way,
        is_native=bool(options.needs_native),
        profiler="SGLang's own profiler",
        word="schedulers",
    )


def _misfits(options: SglangOptions, tools: Mapping[str, Mapping[str, Any]]) -> list[Advice]:
    """Check the options of SGLang's own profiler, as a window would."""
    if options.way == "worker":
        return []
    found: list[Advice] = []
    is_certain = options.way == "native" or bool(options.needs_native) or not tools
    if options.profiler_dir is not None:
        why = cannot_be_written(Path(options.profiler_dir).expanduser().absolute())
        if why:
            where = "" if is_certain else f": {_STANDS_IN}"
            level: Literal["fault", "warning"] = "fault" if is_certain else "warning"
            found.append(Advice(why + where, "profiler_dir", level))
    if sources_here() is not None and find_spec("torch") is not None:
        found += _of_device(options, tools.get("torch", {}))
    return found


def _of_device(options: SglangOptions, torch: Mapping[str, Any]) -> list[Advice]:
    """Report activities that cannot be recorded on the device of an engine here."""
    request = Request(options, Facts("", device=_device(), is_inside=True), torch)
    advice = "choose others, or run this where the engine runs"
    try:
        why = harm_of(list(request.activities()))
    except CaptureError as exc:
        why = str(exc).removeprefix("sglang: activities: ")
    if why:
        words = f"{why.removeprefix('activities: ')}; {advice}"
        return [Advice(words, "activities", "fault")]
    return [
        Advice(f"{how}: it is left out; {advice}", what, "warning")
        for what, how in request.unsupported.items()
    ]


def _device() -> str:
    """Return the device that SGLang would choose."""
    import torch

    for name in ("cuda", "npu", "xpu"):
        part = getattr(torch, name, None)
        if part is not None and part.is_available():
            return name
    return "cpu"
