"""Advice from the sources of the installed vLLM: an import takes seconds, and needs its devices."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from rlprof import Advice, CaptureError
from rlprof_engine.beforehand import advice_on, beyond_known, inside_advice, sources_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from rlprof_vllm._options import VllmOptions

OLDEST, NEWEST = "0.13.0", "0.33.0"
"""The releases whose sources we read; tests compare them with their list of releases."""
PROFILER = "config/profiler.py"


def sources_here() -> Path | None:
    """Find the installed vLLM without importing it."""
    return sources_of("vllm", "envs.py")


def fields(sources: Path, file: str, name: str) -> Collection[str]:
    """Name the fields of class *name* in *file*; none if it is not there."""
    try:
        tree = ast.parse((sources / file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return []
    return {
        line.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == name
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def version(sources: Path) -> str:
    """Read the version from the sources; the distribution's name depends on the device."""
    try:
        text = (sources / "_version.py").read_text(encoding="utf-8")
    except OSError:
        return "of unknown version"
    found = re.search(r"^__version__ = (?:version = )?['\"](.*?)['\"]", text, re.MULTILINE)
    return found[1] if found else "of unknown version"


def has_known_profiler(sources: Path) -> bool:
    """Whether a launch can switch on vLLM's own profiler in a way that we know, as since 0.13."""
    return {"profiler", "torch_profiler_dir"} <= set(fields(sources, PROFILER, "ProfilerConfig"))


def unknown_release() -> list[Advice]:
    """Warn of a vLLM older or newer than the sources that we read."""
    sources = sources_here()
    return [] if sources is None else beyond_known(version(sources), OLDEST, NEWEST)


def advise(
    options: VllmOptions | None,
    tools: Mapping[str, Mapping[str, Any]],
    on_host: bool,  # noqa: FBT001 -- core names it
) -> list[Advice]:
    """Say what records; without *options*, list what the installed vLLM can do."""
    if options is None:
        return capabilities()
    found = advice_on(options.way, tools, False, "vLLM's own profiler", "workers")
    return [found, *(unknown_release() if on_host else ())]


def capabilities() -> list[Advice]:
    """List what the installed vLLM can record, and by which way."""
    sources = sources_here()
    if sources is None:
        raise CaptureError("vLLM is not installed here; install vLLM where the engine runs")
    native = Advice("launched with profiler_config", "way native")
    if not has_known_profiler(sources):
        native = Advice("unknown: this vLLM has its profiler elsewhere", "way native", "warning")
    inside = inside_advice("any tool, any rank, each window by itself", "VLLM_PLUGINS")
    first = Advice(f"{version(sources)}; the newest that rlprof knows is {NEWEST}", "vllm")
    return [first, inside, native, *unknown_release()]
