"""Advice from the sources of the installed vLLM: an import takes seconds, and needs its devices."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from rlprof import Advice
from rlprof_engine import beforehand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rlprof_vllm._options import VllmOptions

OLDEST, NEWEST = "0.13.0", "0.33.0"
"""The releases whose sources we read; tests compare them with their list of releases."""


def sources_here() -> Path | None:
    """Find the installed vLLM without importing it."""
    return beforehand.sources_of("vllm", "envs.py")


def profiler_fields(sources: Path) -> set[str]:
    """Name the settings of vLLM's own profiler; none if this vLLM has them in another place."""
    try:
        tree = ast.parse((sources / "config/profiler.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return set()
    return {
        line.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == "ProfilerConfig"
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def version(sources: Path | None) -> str:
    """Read the version from the sources, because the distribution's name depends on the device.

    Empty: there are no sources.
    """
    if sources is None:
        return ""
    try:
        text = (sources / "_version.py").read_text(encoding="utf-8")
    except OSError:
        return "of unknown version"
    found = re.search(r"^__version__ = (?:version = )?['\"](.*?)['\"]", text, re.MULTILINE)
    return found[1] if found else "of unknown version"


def has_known_profiler(sources: Path) -> bool:
    """Whether a launch can switch on vLLM's own profiler in a way that we know, as since 0.13."""
    return {"profiler", "torch_profiler_dir"} <= profiler_fields(sources)


def advise(
    options: VllmOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; without *options*, list what the installed vLLM can do."""
    here = version(sources_here())
    if options is None:
        return beforehand.capabilities("vLLM", here, OLDEST, NEWEST, _ways())
    found = beforehand.advice_on(options.way, tools, False, "vLLM's own profiler", "workers")
    return [found, *(beforehand.beyond_known(here, OLDEST, NEWEST) if on_host else ())]


def _ways() -> Iterator[Advice]:
    """Say what each way can record."""
    yield beforehand.inside_advice("any tool, any rank, each window by itself", "VLLM_PLUGINS")
    sources = sources_here()
    if sources is not None and has_known_profiler(sources):
        yield Advice("launched with profiler_config", "way native")
    else:
        yield Advice("unknown: this vLLM has its profiler elsewhere", "way native", "warning")
