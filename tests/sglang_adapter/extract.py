"""What the sources of one release of SGLang say of its profiling, read by `ast`, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.sglang_adapter.replies import meta_info
from tests.sglang_adapter.scheduler import SCHEDULER, scheduler, scheduler_part
from tests.signatures.sources import (
    Function,
    Trees,
    fields,
    lineage,
    members,
    methods,
)

if TYPE_CHECKING:
    from tests.signatures.record import Json

_TOKENIZER = "sglang/srt/managers/tokenizer_manager.py"
_REQUESTS = "sglang/srt/managers/io_struct.py"
_SERVER = "sglang/srt/entrypoints/http_server.py"
_ARGUMENTS = "sglang/srt/server_args.py"

ASKED = ("start_profile", "stop_profile", "get_internal_state", "auto_create_handle_loop")
WEIGHTS = ("update_weights_from_disk", "update_weights_from_distributed",
           "update_weights_from_tensor", "update_weights_from_ipc", "begin_weight_update",
           "end_weight_update", "release_memory_occupation", "resume_memory_occupation",
           "pause_generation", "continue_generation")  # fmt: skip
"""What an engine can be told between two rollouts."""

OPTIONS = ("sleep_on_idle", "tp_size", "dp_size", "attn_dp_size", "pp_size", "ep_size", "device",
           "enable_metrics", "enable_request_time_stats_logging", "export_metrics_to_file",
           "base_gpu_id", "gpu_id_step", "node_rank", "nnodes", "enable_dp_attention", "use_ray",
           "forward_hooks", "speculative_algorithm")  # fmt: skip
"""The launch arguments that say what a window will be like."""

ROUTES = ("/start_profile", "/stop_profile", "/server_info", "/get_server_info", "/health")

_WANTED = re.compile(
    r"sglang/(srt/(managers|plugins|entrypoints|observability|arg_groups|metrics|ray)/.*"
    r"|srt/server_args|cli/serve|launch_server)\.py"
)


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    trees = {path: ast.parse(text) for path, text in sources.items() if _WANTED.fullmatch(path)}
    tokenizer, requests = trees.get(_TOKENIZER), trees.get(_REQUESTS)
    said = methods(lineage(tokenizer, "TokenizerManager", trees))
    names = ("ProfileReqInput", "ProfileReq", "ProfileReqOutput")
    return {
        "TokenizerManager": {name: said.get(name) for name in (*ASKED, *WEIGHTS)},
        "requests": {name: fields(requests, name) for name in names},
        "scheduler part": scheduler_part(trees),
        "Scheduler": scheduler(trees),
        "plugins": _plugins(trees),
        "HTTP": _routes(trees.get(_SERVER)),
        "ServerArgs": _options(trees),
        "ServerArgs.resolved_dict": _defines(trees.get(_ARGUMENTS), "resolved_dict"),
        "meta_info": meta_info(tokenizer, trees),
    }


def _plugins(trees: Trees) -> Json | None:
    """Describe SGLang's own plugin system; None: this release has none."""
    loader = trees.get("sglang/srt/plugins/__init__.py")
    hooks = trees.get("sglang/srt/plugins/hook_registry.py")
    if not _defines(loader, "load_plugins"):
        return None
    groups = re.findall(r"GENERAL_PLUGINS_GROUP = '(.+)'", ast.unparse(loader))
    return {
        "group": "".join(groups),
        "admitted by": sorted(set(re.findall(r"envs\.(SGLANG_\w+)", ast.unparse(loader)))),
        "HookType": members(hooks, "HookType"),
        "loaded before a scheduler is made": _is_before(
            "load_plugins(", "Scheduler(", "run_scheduler_process", trees[SCHEDULER]
        ),
    }


def _is_before(first: str, then: str, name: str, tree: ast.Module) -> bool:
    """Tell whether the function *name* says *first* before *then*."""
    (function,) = (one for one in tree.body if isinstance(one, Function) and one.name == name)
    text = ast.unparse(function)
    return -1 < text.find(first) < text.find(then)


def _defines(tree: ast.Module | None, name: str) -> bool:
    found = (node for node in ast.walk(tree) if isinstance(node, Function)) if tree else ()
    return any(node.name == name for node in found)


def _routes(server: ast.AST | None) -> Json:
    """Describe the server's paths: methods, and the class of the body where there is one."""
    found: Json = {}
    for node in ast.walk(server) if server is not None else ():
        for mark in node.decorator_list if isinstance(node, Function) else ():
            text = ast.unparse(mark)
            path = re.match(r"app\.(\w+)\('([^']+)'", text)
            if path and path[2] in ROUTES:
                kinds = re.findall(r"'(GET|POST|PUT)'", text) or [path[1].upper()]
                takes = [ast.unparse(a.annotation) for a in node.args.args if a.annotation]
                found[path[2]] = {"methods": kinds, "takes": takes}
    return {name: found.get(name) for name in ROUTES}


def _options(trees: Trees) -> Json:
    """Name the launch arguments with their defaults, in one class or in a file for each group."""
    known: dict[str, str] = {}
    for path, tree in sorted(trees.items()):
        if path == _ARGUMENTS or path.startswith("sglang/srt/arg_groups/fields/"):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    for name, default in (fields(node, node.name) or {}).items():
                        known.setdefault(name, default)
    return {name: known.get(name) for name in OPTIONS}
