"""What the sources of one release of SGLang say of its profiling, read by `ast`, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tests.sglang_adapter.replies import meta_info
from tests.sglang_adapter.scheduler import SCHEDULER, scheduler, scheduler_part
from tests.signatures.sources import (
    Function,
    Trees,
    class_in,
    fields,
    functions_of,
    lineage,
    members,
    methods,
)

if TYPE_CHECKING:
    from tests.signatures.record import Json

_TOKENIZER = "sglang/srt/managers/tokenizer_manager.py"
_REQUESTS = "sglang/srt/managers/io_struct.py"
_ENGINE = "sglang/srt/entrypoints/engine.py"
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

_VARIABLE = re.compile(r"SGLANG_(?:TORCH_PROFILER_DIR|PROFILE_[A-Z0-9_]+|MEM_PROFILE_[A-Z_]+)")
_WANTED = re.compile(
    r"sglang/(srt/(managers|plugins|entrypoints|observability|arg_groups|metrics|ray)/.*"
    r"|srt/server_args|cli/serve|launch_server)\.py"
)


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    trees = {path: ast.parse(text) for path, text in sources.items() if _WANTED.fullmatch(path)}
    tokenizer, requests = trees.get(_TOKENIZER), trees.get(_REQUESTS)
    line = list(lineage(tokenizer, "TokenizerManager", trees))
    said = methods(line)
    engine = methods(lineage(trees.get(_ENGINE), "Engine", trees))
    names = ("ProfileReqInput", "ProfileReq", "ProfileReqOutput")
    bare = [text for path, text in sources.items() if path.startswith("sglang/srt/")]
    return {
        "TokenizerManager": {name: said.get(name) for name in (*ASKED, *WEIGHTS)},
        "Engine": {name: engine.get(name) for name in ASKED[:2]},
        "profiling": _profiling(line, trees),
        "communicator": _communicator(trees),
        "requests": {name: fields(requests, name) for name in names},
        "request kinds": members(requests, "ProfileReqType"),
        "request base": _base(requests),
        "scheduler part": scheduler_part(trees),
        "Scheduler": scheduler(trees, WEIGHTS),
        "plugins": _plugins(trees),
        "HTTP": _routes(trees.get(_SERVER)),
        "ServerArgs": _options(trees),
        "ServerArgs.resolved_dict": _defines(trees.get(_ARGUMENTS), "resolved_dict"),
        "meta_info": meta_info(tokenizer, trees),
        "variables": sorted({name for text in bare for name in _VARIABLE.findall(text)}),
    }


def _profiling(line: list[ast.ClassDef], trees: Trees) -> Json:
    """Describe how the tokenizer's side asks the scheduler, and what it makes of the reply."""
    said = {name: one for node in line for name, one in functions_of(node).items()}
    owner = next((n for n in reversed(line) if "start_profile" in functions_of(n)), None)
    home = [f"{path} {owner.name}" for path, tree in trees.items() if owner and owner in tree.body]
    execute, state, start = (
        said.get(name) for name in ("_execute_profile", "get_internal_state", "start_profile")
    )
    body = [one for one in ast.walk(execute) if isinstance(one, ast.stmt)] if execute else []
    variables = re.findall(r"get_bool_env_var\('(\w+)', '(\w+)'\)", ast.unparse(start or []))
    return {
        "home": "".join(home),
        "reply": [ast.unparse(one) for one in body[1:] if not isinstance(one, ast.If)],
        "refused": [ast.unparse(one.test) for one in body if isinstance(one, ast.If)],
        "replies": _fan_out(line),
        "variables": dict(variables),
        "state": ast.unparse(state.returns) if state and state.returns else "",
    }


def _fan_out(line: list[ast.ClassDef]) -> str:
    """Write how many replies a request waits for."""
    text = "\n".join(ast.unparse(node) for node in line)
    own = re.search(r"self\.profile_communicator = _Communicator\(self\.\w+, (.+)\)", text)
    every = re.search(r"comm = FanOutCommunicator\(self\.\w+, (.+), mode\)", text)
    found = own or every
    return found[1] if found else ""


def _communicator(trees: Trees) -> Json | None:
    """Describe the queue between both sides: what a cancelled call and a late reply do to it."""
    for path, tree in trees.items():
        for name in ("FanOutCommunicator", "_Communicator"):
            node = class_in(tree, name)
            if node is not None:
                receive = functions_of(node)["handle_recv"]
                return {
                    "home": f"{path} {name}",
                    "outlives a cancelled call": "async with" in ast.unparse(node),
                    "drops a late reply": any(isinstance(n, ast.Return) for n in ast.walk(receive)),
                }
    return None


def _base(requests: ast.AST | None) -> str:
    """Say what kind of class a ProfileReq is: a dataclass, or a struct of msgspec."""
    node, base = class_in(requests, "ProfileReq"), class_in(requests, "BaseReq")
    if base is not None and any("Struct" in ast.unparse(one) for one in base.bases):
        return "msgspec.Struct"
    return " ".join(ast.unparse(one) for one in node.decorator_list) if node is not None else ""


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
        "register": methods(lineage(hooks, "HookRegistry", trees)).get("register"),
        "HookType": members(hooks, "HookType"),
        "loaded by": sorted(set(_callers("load_plugins", trees))),
        "loaded before a scheduler is made": _is_before(
            "load_plugins(", "Scheduler(", "run_scheduler_process", trees[SCHEDULER]
        ),
    }


def _callers(name: str, trees: Trees) -> Iterator[str]:
    """Go through what calls *name*: `path function`, or a path alone for a program's own lines."""
    for path, tree in trees.items():
        calls = {n for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_call(n, name)}
        for node in ast.walk(tree):
            inside = calls.intersection(ast.walk(node)) if isinstance(node, Function) else ()
            if inside:
                calls -= set(inside)
                yield f"{path} {node.name}"
        if calls:
            yield path


def _is_before(first: str, then: str, name: str, tree: ast.Module) -> bool:
    """Tell whether the function *name* says *first* before *then*."""
    (function,) = (one for one in tree.body if isinstance(one, Function) and one.name == name)
    text = ast.unparse(function)
    return -1 < text.find(first) < text.find(then)


def _is_call(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


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
