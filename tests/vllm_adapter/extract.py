"""What the sources of one release of vLLM say of its profiling, read by `ast`, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tests.signatures.sources import Function, Trees, class_in, fields, has, lineage, methods

if TYPE_CHECKING:
    from tests.signatures.record import Json

METHODS = {
    "AsyncLLM": ("vllm/v1/engine/async_llm.py",
                 ("start_profile", "stop_profile", "collective_rpc", "is_sleeping", "is_paused",
                  "sleep")),
    "LLM": ("vllm/entrypoints/llm.py", ("start_profile", "stop_profile", "collective_rpc",
                                        "is_sleeping", "is_paused", "sleep")),
    "LLMEngine": ("vllm/v1/engine/llm_engine.py", ("start_profile", "is_sleeping")),
    "Worker": ("vllm/v1/worker/gpu_worker.py", ("profile",)),
    "CPUWorker": ("vllm/v1/worker/cpu_worker.py", ("profile",)),
}  # fmt: skip
"""Class → where it is defined, and the methods whose signatures are kept."""

_ATTRIBUTES = ("errored", "output_handler", "output_processor", "vllm_config", "engine_core")
"""What the adapter looks at of an AsyncLLM."""


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    trees = {path: ast.parse(text) for path, text in sources.items() if _is_wanted(path)}
    found: Json = {}
    for name, (path, wanted) in METHODS.items():
        known = methods(lineage(trees.get(path), name, trees))
        found[name] = {method: known.get(method) for method in wanted}
    asynchronous = class_in(trees.get(METHODS["AsyncLLM"][0]), "AsyncLLM")
    found["AsyncLLM.attributes"] = [a for a in _ATTRIBUTES if has(asynchronous, a)]
    found["ProfilerConfig"] = fields(trees.get("vllm/config/profiler.py"), "ProfilerConfig")
    processor = class_in(trees.get("vllm/v1/engine/output_processor.py"), "OutputProcessor")
    found["OutputProcessor.request_states"] = has(processor, "request_states")
    found["request_states.pop"] = processor is not None and (
        "self.request_states.pop(" in ast.unparse(processor)
    )
    stats = fields(trees.get("vllm/v1/metrics/stats.py"), "RequestStateStats")
    found["RequestStateStats"] = sorted(stats or ())
    found["WorkerWrapperBase"] = [
        path
        for path in ("vllm/v1/worker/worker_base.py",)
        if class_in(trees.get(path), "WorkerWrapperBase") is not None
    ]
    found["iteration_details"] = "def compute_iteration_details(" in sources.get(
        "vllm/v1/utils.py", ""
    )
    found["POST /start_profile"] = _route(trees)
    found["plugin_group"] = _group(trees.get("vllm/plugins/__init__.py"))
    return found


def _is_wanted(path: str) -> bool:
    return path.startswith(
        ("vllm/v1/", "vllm/entrypoints/", "vllm/config/", "vllm/plugins/", "vllm/worker/")
    )


def _route(trees: Trees) -> Json | None:
    """Describe the route that starts a profile: what it takes, and the fields of its body."""
    for path, node in _functions(trees):
        if not any("/start_profile" in ast.unparse(one) for one in node.decorator_list):
            continue
        kinds = [ast.unparse(a.annotation) for a in node.args.args if a.annotation is not None]
        words = {word for kind in kinds for word in re.findall(r"\w+", kind)} - {"Request", "None"}
        bodies = [fields(tree, word) for word in sorted(words) for tree in trees.values()]
        body = next((one for one in bodies if one is not None), None)
        return {"file": path, "takes": kinds, "body": body}
    return None


def _functions(trees: Trees) -> Iterator[tuple[str, Function]]:
    for path, tree in sorted(trees.items()):
        if path.startswith("vllm/entrypoints/"):
            for node in ast.walk(tree):
                if isinstance(node, Function):
                    yield path, node


def _group(tree: ast.AST | None) -> str:
    """Find the entry points' group of `load_general_plugins`."""
    texts = [
        node.value
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return next((text for text in texts if re.fullmatch(r"vllm\.general_plugins", text)), "")
