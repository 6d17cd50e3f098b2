"""What of the options cannot work on this host, and what records: before there is an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof_engine.beforehand import cannot_be_written
from rlprof_engine.beforehand import who_records as said_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_vllm._options import VllmOptions


def who_records(options: VllmOptions, tools: Mapping[str, Mapping[str, Any]]) -> str:
    """Say it."""
    return said_of(
        tools, way=options.way, is_native=False, profiler="vLLM's own profiler", word="workers"
    )


def misfits(
    options: VllmOptions, tools: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | tuple[str, str]]:
    """Judge the folder of vLLM's own profiler, which vLLM is launched with."""
    if options.way == "worker" or options.profiler_dir is None:
        return {}
    why = cannot_be_written(Path(options.profiler_dir).absolute())
    if not why:
        return {}
    is_certain = options.way == "native" or not tools
    where = "where vLLM's own profiler stands for the tools, nothing is recorded"
    return {"profiler_dir": why if is_certain else ("warn", f"{why}: {where}")}
