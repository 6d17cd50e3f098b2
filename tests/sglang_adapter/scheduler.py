"""What a release does inside the scheduler's process: its profiler, and what is called there."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.signatures.sources import (
    Function,
    Trees,
    class_in,
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
        "methods": {name: signature(said[name]) for name in said if name not in _FIRST},
        "kind": sorted(set(re.findall(r"recv_req\.(\w*type)\b", text))),
        "attributes": _attributes(said),
        "targets": sorted(set(re.findall(r"target_forward_ct = (.+ct.* \+ .+)", text))),
        "refuses what torch does": "except RuntimeError" in text,
    }


def scheduler(trees: Trees) -> Json:
    """Describe what is called on the scheduler, and what its method that runs a batch wears."""
    tree = trees.get(SCHEDULER)
    said = methods(lineage(tree, "Scheduler", trees))
    runs = functions_of(class_in(tree, "Scheduler")).get("run_batch")
    return {
        "run_batch": said.get("run_batch"),
        "runs a batch in": [ast.unparse(one) for one in runs.decorator_list] if runs else [],
        "get_internal_state": said.get("get_internal_state"),
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
