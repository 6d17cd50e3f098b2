"""Advice on the options before there is an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import Advice
from rlprof_engine.beforehand import cannot_be_written, who_records
from rlprof_vllm._installed import capabilities, newer_than_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_vllm._options import VllmOptions


def advise(
    options: VllmOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; on the engine's host, also say what cannot work there.

    Without *options*, list what the installed vLLM can do.
    """
    if options is None:
        return capabilities()
    records = Advice(_records(options, tools), about="records")
    return [records, *((*_misfits(options, tools), *newer_than_known()) if on_host else ())]


def _records(options: VllmOptions, tools: Mapping[str, Mapping[str, Any]]) -> str:
    return who_records(
        tools, way=options.way, is_native=False, profiler="vLLM's own profiler", word="workers"
    )


def _misfits(options: VllmOptions, tools: Mapping[str, Mapping[str, Any]]) -> list[Advice]:
    """Check the folder that vLLM's own profiler is launched with."""
    if options.way == "worker" or options.profiler_dir is None:
        return []
    why = cannot_be_written(Path(options.profiler_dir).absolute())
    if not why:
        return []
    if options.way == "native" or not tools:
        return [Advice(why, "profiler_dir", "fault")]
    where = "if vLLM's own profiler stands in for the tools, nothing is recorded"
    return [Advice(f"{why}: {where}", "profiler_dir", "warning")]
