"""Methods, fields and attributes of a class, read from its sources without an import."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = Mapping[str, ast.Module]
"""Path in the wheel → its tree."""


def class_in(tree: ast.AST | None, name: str) -> ast.ClassDef | None:
    """Find the class *name*."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    return None


def functions_of(node: ast.ClassDef | None) -> dict[str, Function]:
    """Return what a class itself defines, by name."""
    body = node.body if node is not None else ()
    return {line.name: line for line in body if isinstance(line, Function)}


def lineage(tree: ast.AST | None, name: str, trees: Trees) -> Iterator[ast.ClassDef]:
    """Go through the bases of a class that are in *trees* first, then the class."""
    node = class_in(tree, name)
    if node is None:
        return
    for base in node.bases:
        inherited = ast.unparse(base).partition("[")[0]
        home = next((one for one in trees.values() if class_in(one, inherited) is not None), None)
        if inherited != name:
            yield from lineage(home, inherited, trees)
    yield node


def methods(line: Iterable[ast.ClassDef]) -> dict[str, str]:
    """Write the signatures of a class, given as its `lineage`, without annotations."""
    found: dict[str, str] = {}
    for node in line:
        found |= {name: signature(one) for name, one in functions_of(node).items()}
    return found


def signature(function: Function) -> str:
    """Write `async def name(self, first, *, second=None)`: names, kinds and defaults."""
    arguments = copy.deepcopy(function.args)
    several = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    for one in (*several, arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = None
    word = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{word} {function.name}({ast.unparse(arguments)})"


def has(node: ast.ClassDef | None, attribute: str) -> bool:
    """Return whether a class defines *attribute*, or sets it on itself."""
    for line in ast.walk(node) if node is not None else ():
        if isinstance(line, ast.FunctionDef) and line.name == attribute:
            return True
        is_set = isinstance(line, ast.Attribute) and isinstance(line.ctx, ast.Store)
        if is_set and ast.unparse(line) == f"self.{attribute}":
            return True
    return False


def fields(tree: ast.AST | None, name: str) -> dict[str, str] | None:
    """Name the fields of a dataclass with their defaults; None: there is no such class."""
    node = class_in(tree, name)
    if node is None:
        return None
    found = {}
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            value = line.value  # of `Field(default=X, ...)` only X
            for keyword in value.keywords if isinstance(value, ast.Call) else ():
                value = keyword.value if keyword.arg == "default" else value
            found[line.target.id] = "" if value is None else ast.unparse(value)
    return found


def members(tree: ast.AST | None, name: str) -> dict[str, str] | None:
    """Name the members of an Enum with their values; None: there is no such class."""
    node = class_in(tree, name)
    if node is None:
        return None
    lines = [line for line in node.body if isinstance(line, ast.Assign)]
    return {ast.unparse(line.targets[0]): ast.unparse(line.value) for line in lines}
