"""Advice on the options before there is an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_engine.beforehand import advice_on
from rlprof_sglang._installed import capabilities, newer_than_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Advice
    from rlprof_sglang._options import SglangOptions


def advise(
    options: SglangOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; without *options*, list what the installed SGLang can do."""
    if options is None:
        return capabilities()
    is_native = bool(options.needs_native)
    found = advice_on(options.way, tools, is_native, "SGLang's own profiler", "schedulers")
    return [found, *(newer_than_known() if on_host else ())]
