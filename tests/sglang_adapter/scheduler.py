"""What a release does inside the scheduler's process: its profiler, its counter, its weights."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.signatures.sources import (
    Function,
    Trees,
    class_in,
    fields,
    functions_of,
    lineage,
    methods,
    signature,
)

if TYPE_CHECKING:
    from tests.signatures.record import Json

_FOLDER = "sglang/srt/managers/"
SCHEDULER = _FOLDER + "scheduler.py"
_STARTS = {"start_profile", "_start_profile"}
_FIRST = ("__post_init__", "init_profiler", "init_profier", "__init__")
"""Where the profiler's state is made; up to 0.5.1 the third is spelt so."""


def scheduler_part(trees: Trees) -> Json | None:
    """Describe the class that profiles: `Scheduler`, a part it inherits, or one it holds."""
    homes = [(path, node) for path, node in _classes(trees) if _STARTS & {*functions_of(node)}]
    if not homes:
        return None
    path, node = homes[0]
    said = {name: one for name, one in functions_of(node).items()
            if "profile" in name or name in _FIRST}  # fmt: skip
    text = "\n".join(ast.unparse(one) for name, one in said.items() if name != "__init__")
    return {
        "home": f"{path} {node.name}",
        "fields": fields(trees[path], node.name),
        "methods": {name: signature(said[name]) for name in said if name not in _FIRST},
        "handler": _handler(trees.get(SCHEDULER)),
        "kind": sorted(set(re.findall(r"recv_req\.(\w*type)\b", text))),
        "attributes": _attributes(said),
        "activities": _activities(said),
        "folder": sorted(set(re.findall(r"getenv\('\w+PROFILER_DIR', '(.+)'\)", text))),
        "targets": sorted(set(re.findall(r"target_forward_ct = (.+ct.* \+ .+)", text))),
        "refusals": sorted({*re.findall(r"message='([^']+)'", text)} - {"Succeeded"}),
        "refuses what torch does": "except RuntimeError" in text,
        "names": dict(re.findall(r"if (.+):\n +filename_parts.append\(f['\"](\w+-)", text)),
    }


def scheduler(trees: Trees, weights: tuple[str, ...]) -> Json:
    """Describe the scheduler: what is called on it, its counter, and who changes its weights."""
    tree = trees.get(SCHEDULER)
    said = methods(lineage(tree, "Scheduler", trees))
    counts = [
        f"{path} {node.name}.{name}"
        for path, node in _classes(trees)
        for name, one in functions_of(node).items()
        if "self.forward_ct += 1" in ast.unparse(one)
    ]
    homes: dict[str, list[str]] = {}
    for path, node in _classes(trees):
        for name in weights:
            if name in functions_of(node):
                homes.setdefault(f"{path} {node.name}", []).append(name)
    runs = functions_of(class_in(tree, "Scheduler")).get("run_batch")
    told = re.findall(r"self\.([\w.]+)\(batch\)", ast.unparse(runs)) if runs is not None else []
    return {
        "run_batch": said.get("run_batch"),
        "runs a batch in": [ast.unparse(one) for one in runs.decorator_list] if runs else [],
        "told of a batch": [name for name in told if "profile" in name],
        "get_internal_state": said.get("get_internal_state"),
        "counts": counts,
        "weights": homes,
    }


def _classes(trees: Trees) -> list[tuple[str, ast.ClassDef]]:
    """List the classes of the scheduler's files."""
    return [
        (path, node)
        for path, tree in sorted(trees.items())
        if path.startswith(_FOLDER + "scheduler")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]


def _handler(tree: ast.AST | None) -> str:
    """Write what the scheduler calls for a ProfileReq."""
    node = class_in(tree, "Scheduler")
    for one in ast.walk(node) if node is not None else ():
        if isinstance(one, ast.Tuple) and len(one.elts) == 2:
            request, handler = map(ast.unparse, one.elts)
            if request == "ProfileReq":
                return handler
    return ""


def _attributes(said: Mapping[str, Function]) -> dict[str, list[str]]:
    """Name what each method sets on itself for the first time, those that make the state first."""
    found: dict[str, list[str]] = {}
    known: set[str] = set()
    for name in sorted(said, key=lambda name: name not in _FIRST):
        stores = [
            one.attr
            for one in ast.walk(said[name])
            if isinstance(one, ast.Attribute)
            and isinstance(one.ctx, ast.Store)
            and ast.unparse(one.value) == "self"
            and (name != "__init__" or "profile" in one.attr)
        ]
        new = [attribute for attribute in dict.fromkeys(stores) if attribute not in known]
        known.update(new)
        if new:
            found[name] = new
    return found


def _activities(said: Mapping[str, Function]) -> list[str]:
    """Name the activities that do something: torch's own, and those asked for by name."""
    found: set[str] = set()
    for node in (one for name in said if name != "__init__" for one in ast.walk(said[name])):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("activity_map"):
            keys = node.value.keys if isinstance(node.value, ast.Dict) else [node.targets[0].slice]
            found |= {ast.unparse(key).strip("'") for key in keys}
        elif isinstance(node, ast.Compare):
            asked = re.fullmatch(r"'(\w+)' in .*activities", ast.unparse(node))
            found |= {asked[1]} if asked else set()
    return sorted(found)
