"""Which times and counts of a request a release puts into the reply, and when."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tests.signatures.sources import Trees, class_in, functions_of

_KEY = re.compile(
    r".*(_ts|_time|_latency|_delay|_wait|_throughput|_retractions)|finish_reason|weight_version"
    r"|(prompt|completion|cached|reasoning)_tokens"
)
_REPLIES = ("_handle_batch_output", "_wait_one_response", "_stream_one_response")
_ASIDE = {"convert_to_output_meta_info", "_calculate_timing_metrics"}
"""The methods that add timings where they are asked for."""
_CONDITIONS = ("enable_metrics", "finished")


def meta_info(tokenizer: ast.AST | None, trees: Trees) -> dict[str, list[str]]:
    """Sort the keys of a reply's `meta_info` by what they need: nothing, the metrics, an end."""
    manager = functions_of(class_in(tokenizer, "TokenizerManager"))
    found: dict[str, list[str]] = {}
    for method in (manager[name] for name in _REPLIES if name in manager):
        for node, needs in _branches(method.body, frozenset()):
            written = [*_written(node), *_added(node, trees)]
            for key in (one for one in written if _KEY.fullmatch(one)):
                found[key] = min(found.get(key, sorted(needs)), sorted(needs), key=len)
    by_needs: dict[str, list[str]] = {}
    for key, needed in sorted(found.items()):
        by_needs.setdefault(", ".join(needed) or "nothing", []).append(key)
    return dict(sorted(by_needs.items()))


def _branches(
    body: list[ast.stmt], needs: frozenset[str]
) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Go through the nodes of statements, with the conditions that hold there."""
    for line in body:
        if isinstance(line, ast.If):
            asked = ast.unparse(line.test)
            more = {one for one in _CONDITIONS if re.search(rf"(?<!not )\b(\w+\.)*{one}\b", asked)}
            yield from _branches(line.body, needs if asked.startswith("not ") else needs | more)
            yield from _branches(line.orelse, needs)
        elif isinstance(line, ast.For | ast.While | ast.With | ast.Try):
            yield from _branches(line.body, needs)
        else:
            yield from ((node, needs) for node in ast.walk(line))


def _written(node: ast.AST) -> Iterator[str]:
    """Go through the keys a node writes: an item, a dictionary, a metric by its name."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        if re.search(r"\bmeta_(info|data)\b", ast.unparse(node.value)):
            yield from _texts([node.slice])
    elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
        if ast.unparse(node).startswith("meta_"):
            yield from _texts(node.value.keys)
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name == "self._add_metric_if_present":
            yield from _texts(node.args[1:2])
        elif re.fullmatch(r"meta_\w+\.update", name) and isinstance(node.args[0], ast.Dict):
            yield from _texts(node.args[0].keys)


def _texts(nodes: Iterable[ast.expr | None]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _added(node: ast.AST, trees: Trees) -> Iterator[str]:
    """Go through the keys that a method adds aside, where a node calls one.

    The scheduler's times and the server's are classes with a method of the same name.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name, is_scheduler = node.func.attr, "scheduler" in ast.unparse(node.func.value)
    every = (one for tree in trees.values() for one in tree.body if isinstance(one, ast.ClassDef))
    for home in every if name in _ASIDE else ():
        method = functions_of(home).get(name)
        is_asked = is_scheduler == home.name.startswith("Scheduler")
        for line in ast.walk(method) if method is not None and is_asked else ():
            yield from _written(line)
