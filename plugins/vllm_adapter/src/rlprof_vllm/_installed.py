"""Reads the sources of the installed vLLM: an import takes seconds, and needs its devices."""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING

from rlprof import Advice, CaptureError
from rlprof_engine.beforehand import beyond_known, sources_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

PLUGIN = "rlprof"
"""Our name among vLLM's general plugins."""
NEWEST = "0.33.0"
"""The newest release whose sources we read; tests compare it with their list of releases."""
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


def newer_than_known() -> list[Advice]:
    """Warn of a vLLM newer than the sources that we read."""
    sources = sources_here()
    return [] if sources is None else beyond_known(version(sources), NEWEST)


def capabilities() -> list[Advice]:
    """List what the installed vLLM can record, and by which way."""
    sources = sources_here()
    if sources is None:
        raise CaptureError("vLLM is not installed here; install rlprof-vllm where the engine runs")
    allowed = os.environ.get("VLLM_PLUGINS")
    found = [Advice(version(sources), "vllm")]
    if allowed is None or PLUGIN in allowed.split(","):
        found.append(Advice("any tool, any rank, each window by itself", "way worker"))
    else:
        without = f"VLLM_PLUGINS is {allowed!r}, without {PLUGIN}"
        text = f"not admitted: {without}; the launch's environment adds it"
        found.append(Advice(text, "way worker", "warning"))
    if has_known_profiler(sources):
        found.append(Advice("launched with profiler_config", "way native"))
    else:
        text = "unknown: this vLLM has its profiler elsewhere"
        found.append(Advice(text, "way native", "warning"))
    return [*found, *newer_than_known()]
