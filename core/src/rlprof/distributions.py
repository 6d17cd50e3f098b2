"""What other distributions offer: packages for names of `rlprof`, and plugins."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rlprof.errors import closest, shown, with_article

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

KNOWN: dict[tuple[str, str], str] = {
    ("tool", "torch"): "rlprof-torch",
    ("tool", "torch_memory"): "rlprof-torch",
    ("tool", "nsys"): "rlprof-nsys",
    ("tool", "npu"): "rlprof-npu",
    ("exporter", "timeline"): "rlprof-timeline",
    ("exporter", "parquet"): "rlprof-report[parquet]",
    ("engine", "vllm"): "rlprof-vllm",
    ("engine", "sglang"): "rlprof-sglang",
    ("listener", "live"): "rlprof-live",
    ("listener", "bucket"): "rlprof-bucket",
}
"""Kind and name → the distribution that offers it, to say what to install."""


def how_to_install(dist: str) -> str:
    """Return the command that installs *dist*: from the checkout that rlprof came from, if any."""
    import json
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        text = metadata.distribution("rlprof-core").read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    checkout = Path(unquote(urlsplit(origin.get("url", "")).path)).parent
    if "dir_info" not in origin or not checkout.is_dir():
        return f"pip install {dist}"
    return f"pip install '{checkout}[{dist.partition('[')[0].removeprefix('rlprof-')}]'"


def load(package: str, *, asked: str) -> ModuleType:
    """Import *package*; if it is missing, name the distribution that `rlprof.<asked>` needs."""
    try:
        return import_module(package)
    except ModuleNotFoundError as exc:
        if exc.name != package.partition(".")[0]:
            raise
        dist = exc.name.replace("_", "-")
        raise ImportError(
            f"rlprof.{asked}: needs {dist}; {how_to_install(dist)}", name=exc.name
        ) from None


def why_missing(kind: str, name: str, installed: Mapping[str, Sequence[str]]) -> str:
    """Say that no plugin *name* is among the *installed* ones of its *kind*, and what to do."""
    there = f" (installed: {', '.join(installed[kind]) or 'none'})"
    if (kind, name) in KNOWN:
        return f"{kind} {name!r} is not installed; {how_to_install(KNOWN[kind, name])}{there}"
    for other, names in installed.items():
        if name in names or (other, name) in KNOWN:
            is_meant = (kind, other) == ("tool", "engine")
            todo = f"; write roles: {{rollout: {{engine: {name}}}}}" if is_meant else ""
            what = f"is {with_article(other)}, not {with_article(kind)}"
            return f"{shown(name)} {what}{there}{todo}"
    hint = closest(name, [*installed[kind], *(word for of, word in KNOWN if of == kind)])
    return f"{kind} {shown(name)} is not installed{hint}{there}"
