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
_ENGINE = "v1/engine/async_llm.py"
_STATS = "v1/metrics/stats.py"


def sources_here() -> Path | None:
    """Find the installed vLLM without importing it."""
    return sources_of("vllm", "envs.py")


def fields(sources: Path, file: str, name: str) -> Collection[str]:
    """Name the fields of class *name* in *file*; none if it is not there."""
    return {
        line.target.id
        for node in _nodes(sources, file)
        if isinstance(node, ast.ClassDef) and node.name == name
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def _parameters(sources: Path) -> Collection[str]:
    """Name the parameters of AsyncLLM's `start_profile`."""
    return {
        argument.arg
        for node in _nodes(sources, _ENGINE)
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "start_profile"
        for argument in (*node.args.args, *node.args.kwonlyargs)
        if argument.arg != "self"
    }


def _nodes(sources: Path, file: str) -> list[ast.AST]:
    try:
        tree = ast.parse((sources / file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return []
    return list(ast.walk(tree))


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
    taken = _parameters(sources)
    known = fields(sources, PROFILER, "ProfilerConfig")
    sessions = "max_iterations" in taken
    allowed = os.environ.get("VLLM_PLUGINS")
    is_admitted = allowed is None or PLUGIN in allowed.split(",")
    per_window, as_launched = "of each window", "as the engine was launched"
    has_counts = "num_preemptions" in fields(sources, _STATS, "RequestStateStats")
    requests = ", preemptions" if has_counts else "; preemptions are not counted"
    inside = "any tool, any rank, each window by itself"
    if not is_admitted:
        without = f"VLLM_PLUGINS is {allowed!r}, without {PLUGIN}"
        inside = f"not admitted: {without}; the launch's environment adds it"
    iterations = as_launched if "max_iterations" in known else "all of a window"
    found = {
        "vllm": version(sources),
        "way worker": inside,
        "way native": "launched with profiler_config",
        "native files": "a prefix of each window" if sessions else "recognized as new files",
        "native iterations": per_window if sessions else iterations,
        "native contents": per_window if "profiler_kwargs" in taken else as_launched,
        "requests": f"queued, prefill, decode, tokens{requests}",
    }
    lacks = [] if is_admitted else ["way worker"]
    if not has_known_profiler(sources):
        found["way native"] = "unknown: this vLLM has its profiler elsewhere"
        lacks.append("way native")
    return [
        *(Advice(how, what, "warning" if what in lacks else "note") for what, how in found.items()),
        *newer_than_known(),
    ]
