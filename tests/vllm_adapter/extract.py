"""What the sources of one release of vLLM say of its profiling, read by `ast`, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

Json = dict[str, object]

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

_VARIABLE = re.compile(r"VLLM_[A-Z_]*PROFIL[A-Z_]*")


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    trees = {path: ast.parse(text) for path, text in sources.items() if _is_wanted(path)}
    found: Json = {}
    for name, (path, methods) in METHODS.items():
        known = _methods(trees.get(path), name, trees)
        found[name] = {method: known.get(method) for method in methods}
    asynchronous = _class(trees.get(METHODS["AsyncLLM"][0]), "AsyncLLM")
    found["AsyncLLM.attributes"] = [a for a in _ATTRIBUTES if _has(asynchronous, a)]
    found["ProfilerConfig"] = _fields(trees.get("vllm/config/profiler.py"), "ProfilerConfig")
    found["variables"] = sorted(set(_VARIABLE.findall(sources.get("vllm/envs.py", ""))))
    processor = _class(trees.get("vllm/v1/engine/output_processor.py"), "OutputProcessor")
    found["OutputProcessor.request_states"] = _has(processor, "request_states")
    found["request_states.pop"] = processor is not None and (
        "self.request_states.pop(" in ast.unparse(processor)
    )
    stats = _fields(trees.get("vllm/v1/metrics/stats.py"), "RequestStateStats")
    found["RequestStateStats"] = sorted(stats or ())
    found["WorkerWrapperBase"] = [
        path
        for path in ("vllm/v1/worker/worker_base.py", "vllm/worker/worker_base.py")
        if _class(trees.get(path), "WorkerWrapperBase") is not None
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


def _class(tree: ast.AST | None, name: str) -> ast.ClassDef | None:
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    return None


def _methods(tree: ast.AST | None, name: str, trees: Mapping[str, ast.Module]) -> dict[str, str]:
    """Write the signatures of a class as Python does, without annotations; its bases' come first.

    Bases are looked for beside the class alone: what vLLM inherits from far away are abstract
    classes.
    """
    node = _class(tree, name)
    if node is None:
        return {}
    found: dict[str, str] = {}
    for base in node.bases:
        inherited = ast.unparse(base).partition("[")[0]
        homes = [one for one in trees.values() if _class(one, inherited) is not None]
        if homes and inherited != name:
            found |= _methods(homes[0], inherited, trees)
    for line in node.body:
        if isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef):
            found[line.name] = signature(line)
    return found


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Write `async def name(self, first, *, second=None)`: names, kinds and defaults."""
    arguments = function.args
    several = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    for one in (*several, arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = None
    word = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{word} {function.name}({ast.unparse(arguments)})"


def _has(node: ast.ClassDef | None, attribute: str) -> bool:
    """Tell whether a class defines *attribute*, or sets it on itself."""
    for line in ast.walk(node) if node is not None else ():
        if isinstance(line, ast.FunctionDef) and line.name == attribute:
            return True
        is_set = isinstance(line, ast.Attribute) and isinstance(line.ctx, ast.Store)
        if is_set and ast.unparse(line) == f"self.{attribute}":
            return True
    return False


def _fields(tree: ast.AST | None, name: str) -> dict[str, str] | None:
    """Name the fields of a dataclass with their defaults; None: there is no such class."""
    node = _class(tree, name)
    if node is None:
        return None
    return {
        line.target.id: "" if line.value is None else _default(line.value)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def _default(value: ast.expr) -> str:
    """Write a default; of `Field(default=X, ...)` only X."""
    if isinstance(value, ast.Call):
        for keyword in value.keywords:
            if keyword.arg == "default":
                return ast.unparse(keyword.value)
    return ast.unparse(value)


def _route(trees: Mapping[str, ast.Module]) -> Json | None:
    """Describe the route that starts a profile: what it takes, and the fields of its body."""
    for path, node in _functions(trees):
        if not any("/start_profile" in ast.unparse(one) for one in node.decorator_list):
            continue
        kinds = [ast.unparse(a.annotation) for a in node.args.args if a.annotation is not None]
        words = {word for kind in kinds for word in re.findall(r"\w+", kind)} - {"Request", "None"}
        bodies = [_fields(tree, word) for word in sorted(words) for tree in trees.values()]
        body = next((fields for fields in bodies if fields is not None), None)
        return {"file": path, "takes": kinds, "body": body}
    return None


def _functions(
    trees: Mapping[str, ast.Module],
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in sorted(trees.items()):
        if path.startswith("vllm/entrypoints/"):
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield path, node


def _group(tree: ast.AST | None) -> str:
    """Find the entry points' group of `load_general_plugins`."""
    texts = [
        node.value
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return next((text for text in texts if re.fullmatch(r"vllm\.general_plugins", text)), "")
