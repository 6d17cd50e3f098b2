"""Advice from the installed SGLang without an import, which takes seconds and needs its devices."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

from rlprof import Advice
from rlprof_engine import beforehand
from rlprof_sglang._words import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof_sglang._options import SglangOptions

OLDEST, NEWEST = "0.5.18", "0.5.23"
"""The releases whose sources we read; tests compare them with their list of releases."""


def version() -> str:
    """Return the version of the installed SGLang; empty: it is not installed."""
    if beforehand.sources_of("sglang", "srt") is None:
        return ""
    try:
        return version_of("sglang")
    except PackageNotFoundError:
        return "of unknown version"


def is_version_2() -> bool:
    """Whether SGLang uses its second profiler, which can start by stage, but cannot be stopped."""
    return os.environ.get("SGLANG_PROFILE_V2", "").lower() in ("1", "true", "yes", "y")


def advise(
    options: SglangOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; without *options*, list what the installed SGLang can do."""
    here = version()
    if options is None:
        return beforehand.capabilities("SGLang", here, OLDEST, NEWEST, _ways())
    is_native = bool(options.needs_native)
    found = beforehand.advice_on(
        options.way, tools, is_native, "SGLang's own profiler", "schedulers"
    )
    return [found, *(beforehand.beyond_known(here, OLDEST, NEWEST) if on_host else ())]


def _ways() -> Iterator[Advice]:
    """Say what each way can record."""
    inside = "any tool, any rank, exact iterations; launched by rlprof.launch"
    yield beforehand.inside_advice(inside, PLUGINS, empty_is_all=True)
    if is_version_2():
        text = "SGLANG_PROFILE_V2 is set; its profiler ends the schedulers; unset it"
        yield Advice(text, "way native", "warning")
    else:
        yield Advice("torch; by stage; its own merge", "way native")
