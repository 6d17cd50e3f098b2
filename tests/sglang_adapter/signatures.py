"""The signatures of SGLang's releases, kept next to this file.

`python -m tests.sglang_adapter.signatures --refresh` reads them out of the wheels of each release;
`--check` reports whether the newest release of the index has what none of these has.
A wheel has 3 to 40 MB; a whole refresh takes minutes.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.signatures.record import Json, Record
from tests.signatures.sources import Function, Trees, class_in, fields, lineage, members, methods

RELEASES = tuple(f"sglang==0.5.{patch}" for patch in range(18, 24))
"""The newest six; rlprof drives these, and later ones."""

_SRT = "sglang/srt"
_SCHEDULER = f"{_SRT}/managers/scheduler.py"
_PROFILER = f"{_SRT}/managers/scheduler_components/profiler_manager.py"
_ASKED = ("start_profile", "stop_profile", "get_internal_state")
_OPTIONS = ("tp_size", "dp_size", "attn_dp_size", "pp_size", "device",
            "enable_metrics", "nnodes", "enable_dp_attention")  # fmt: skip
"""The launch arguments that determine how a window is recorded."""
_ROUTES = ("/start_profile", "/stop_profile", "/server_info")
_REPLIED = ("finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens", "dp_rank",
            "num_retractions", "queue_time", "forward_entry_time",
            "prefill_finished_time")  # fmt: skip
"""The fields that a reply may have about its request."""
_WANTED = re.compile(
    rf"{_SRT}/((managers|plugins|entrypoints|observability|arg_groups)/.*|server_args)\.py"
)


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    trees = {path: ast.parse(text) for path, text in sources.items() if _WANTED.fullmatch(path)}
    tokenizer = trees.get(f"{_SRT}/managers/tokenizer_manager.py")
    requests = trees.get(f"{_SRT}/managers/io_struct.py")
    said = methods(lineage(tokenizer, "TokenizerManager", trees))
    run = methods(lineage(trees.get(_SCHEDULER), "Scheduler", trees))
    arguments = f"{_SRT}/server_args.py"
    said_in = ("managers/tokenizer_manager", "observability/req_time_stats")
    replies = [sources.get(f"{_SRT}/{path}.py", "") for path in said_in]
    return {
        "TokenizerManager": {name: said.get(name) for name in _ASKED},
        "requests": {name: fields(requests, name) for name in ("ProfileReq", "ProfileReqOutput")},
        "scheduler part": _part(trees.get(_PROFILER)),
        "Scheduler": {name: run.get(name) for name in ("run_batch", "get_internal_state")},
        "plugins": _plugins(trees),
        "HTTP": [
            path for path in _ROUTES if f'"{path}"' in sources[f"{_SRT}/entrypoints/http_server.py"]
        ],
        "ServerArgs": _options(trees, arguments),
        "ServerArgs.resolved_dict": "def resolved_dict(" in sources[arguments],
        "meta_info": [name for name in _REPLIED if any(f'"{name}"' in text for text in replies)],
    }


def _part(tree: ast.AST | None) -> Json:
    """Describe the class that profiles: its methods, what it sets on itself, when it stops."""
    node = class_in(tree, "SchedulerProfilerManager")
    text = "" if node is None else ast.unparse(node)
    return {
        "methods": sorted(methods([] if node is None else [node])),
        "attributes": sorted(
            set(re.findall(r"self\.(profile\w*|torch_profiler\w*)(?::| =)", text))
        ),
        "reads": sorted(set(re.findall(r"recv_req\.(\w*type)\b", text))),
        "targets": sorted(set(re.findall(r"target_forward_ct = (.+ct.* \+ .+)", text))),
        "refuses what torch does": "except RuntimeError" in text,
    }


def _plugins(trees: Trees) -> Json:
    """Describe SGLang's own plugin system."""
    loader = ast.unparse(trees[f"{_SRT}/plugins/__init__.py"])
    functions = (one for one in trees[_SCHEDULER].body if isinstance(one, Function))
    runs = next(ast.unparse(one) for one in functions if one.name == "run_scheduler_process")
    return {
        "group": "".join(re.findall(r"GENERAL_PLUGINS_GROUP = '(.+)'", loader)),
        "admitted by": sorted(set(re.findall(r"envs\.(SGLANG_\w+)", loader))),
        "HookType": members(trees[f"{_SRT}/plugins/hook_registry.py"], "HookType"),
        "loaded before a scheduler is made": "Scheduler(" not in runs.partition("load_plugins(")[0],
    }


def _options(trees: Trees, arguments: str) -> Json:
    """Name the launch arguments with their defaults, in one class or in a file for each group."""
    known: dict[str, str] = {}
    for path, tree in sorted(trees.items()):
        if path == arguments or path.startswith(f"{_SRT}/arg_groups/fields/"):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    for name, default in (fields(node, node.name) or {}).items():
                        known.setdefault(name, default)
    return {name: known.get(name) for name in _OPTIONS}


RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described)


if __name__ == "__main__":
    sys.exit(RECORD.main("tests.sglang_adapter.signatures", __doc__))
