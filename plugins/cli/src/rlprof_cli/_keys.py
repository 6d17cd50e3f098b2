"""`rlprof check --keys`: every key of a config, and every option of the installed plugins.

Names, defaults and types come from the attrs classes that check a config. What a key means is the
docstring, or the comment, of its field in the source.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import textwrap
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof import plugins
from rlprof.config import Config
from rlprof.errors import PluginError, shown
from rlprof.schedule import Steps
from rlprof_cli.offers import offers
from rlprof_cli.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 100
"""The most columns of the table."""
_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_PYTHON = re.compile(r"(?:(?<=[;.] )|^)(?:[Nn]one|True|False)(?=:)")
_YAML = {"none": "null", "true": "true", "false": "false"}
"""How a config writes these values of Python."""
_NOT_WORDS = ("noqa", "type:", "fmt:", "pragma:", "pylint:")
"""Comments for programs begin like this."""


@attrs.frozen
class Key:
    """A key of a config."""

    key: str
    """Its path: `roles.<role>.ranks`, `tools.torch.contents`."""
    default: str
    """As a config has it; empty: the key is required."""
    type: str
    """What may be written; empty: the meaning says so."""
    meaning: str
    plugin: str
    """The plugin and its distribution; empty: a key of rlprof itself."""


def all_keys() -> tuple[list[Key], list[str]]:
    """Return the keys, and the reasons why the keys of some plugins are not among them."""
    found, faults = list(_keys_of(Config, "", "")), []
    for offer in offers():
        if offer.kind not in ("tool", "engine"):
            continue  # others have no options in a config
        try:
            options = getattr(plugins.load(offer.kind, offer.name), "Options", None)
        except PluginError as exc:
            faults.append(str(exc))
            continue
        if isinstance(options, type) and attrs.has(options):
            found += _keys_of(options, f"{offer.kind}s.{offer.name}.", str(offer))
    return found, faults


def keys_table(keys: list[Key]) -> str:
    """Lay out *keys* in 100 columns at most, with an empty line between mappings."""
    rows: list[tuple[str, ...]] = []
    mapping = ""
    for one in keys:
        if mapping != (mapping := one.key.rpartition(".")[0]):
            rows.append(("", "", ""))
        is_plain = one.meaning and one.type in _TYPES.values() and one.default not in ("", "null")
        words = f"({one.type})" if one.type and not is_plain else ""  # else the default shows it
        meaning = " ".join(filter(None, (one.meaning, words)))
        rows.append((one.key, one.default or "required", meaning))
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 0)).columns)
    return table(("KEY", "DEFAULT", "MEANING"), rows, width=width)


def _keys_of(
    cls: type[Any], path: str, plugin: str, outer: tuple[type[Any], ...] = ()
) -> Iterator[Key]:
    """Give the keys of *cls*, then those of each mapping in it, unless it is among *outer*."""
    hints, meanings, inner, outer = _hints(cls), _meanings(cls), [], (*outer, cls)
    for field in attrs.fields(cls):
        hint, key = hints[field.name], f"{path}{field.name}"
        inside = _class_in(hint)
        if inside is not None and inside not in outer:
            each = f"<{field.name.removesuffix('s')}>." if _is_mapping(hint) else ""
            inner.append((inside, f"{key}.{each}"))
        is_parsed = "parse" in field.metadata
        meaning = meanings.get(field.name, "")
        if not is_parsed or field.default is None:  # else a config may have another word for None
            meaning = _PYTHON.sub(lambda found: _YAML[found[0].lower()], meaning)
        words = "" if inside is not None or (is_parsed and meaning) else _type(hint)
        yield Key(key, _default(field), words, meaning, plugin)
    for inside, here in inner:
        yield from _keys_of(inside, here, plugin, outer)


def _hints(cls: type[Any]) -> dict[str, Any]:
    """Resolve the types of the fields; where that fails, return the text of the annotations."""
    try:
        found = typing.get_type_hints(cls)
    except (NameError, AttributeError, TypeError, SyntaxError):
        found = {}
    return {one.name: found.get(one.name, one.type) for one in attrs.fields(cls)}


def _class_in(hint: Any) -> type[Any] | None:
    """Return the attrs class whose keys stand below a field, if there is one."""
    inner = [one for one in typing.get_args(hint) if one is not type(None)]
    if _is_mapping(hint) or (_is_union(hint) and len(inner) == 1):
        return _class_in(inner[-1])
    is_class = isinstance(hint, type) and attrs.has(hint) and hint is not Steps
    return hint if is_class else None


def _is_mapping(hint: Any) -> bool:
    return typing.get_origin(hint) in (Mapping, dict)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _type(hint: Any) -> str:
    """Name what may be written for *hint*, in the words of a config."""
    inner = [one for one in typing.get_args(hint) if one is not type(None)]
    if hint in (None, Any):
        return ""
    if isinstance(hint, str):
        return hint
    if isinstance(hint, type) and hint in _TYPES:
        return _TYPES[hint]
    if _is_union(hint) or typing.get_origin(hint) is Literal:
        return " or ".join(str(one) if isinstance(one, str) else _type(one) for one in inner)
    if _is_mapping(hint):
        return "keys and values"
    if typing.get_origin(hint) in (tuple, list):
        return "a list"
    return inspect.formatannotation(hint)


def _default(field: attrs.Attribute[Any]) -> str:
    """Write the default of *field* as a config does; empty: there is none."""
    value = field.default
    if value is attrs.NOTHING:
        return ""
    if (factory := getattr(value, "factory", None)) is not None:
        return _written(factory()) if factory in (dict, list, tuple) else "computed"
    if type(value) is int and field.name.endswith("bytes"):
        for unit, size in (("GB", 10**9), ("MB", 10**6)):
            if value and value % size == 0:
                return f"{value // size}{unit}"
    return _written(value)


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_written(one)}' for key, one in value.items())}}}"
    if attrs.has(type(value)) and not isinstance(value, Steps):
        return "{}"  # its keys have lines of their own
    return str(value) if isinstance(value, (str, int, Steps)) else shown(value)


def _meanings(cls: type[Any]) -> dict[str, str]:
    """Map the fields of *cls* to what their docstrings or comments say, from the source."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        try:
            source = textwrap.dedent(inspect.getsource(base))
            body = ast.parse(source).body[0].body  # type: ignore[attr-defined]  # a class
        except (OSError, TypeError, SyntaxError, IndexError, AttributeError):  # there is no source
            continue
        lines = source.splitlines()
        for node, below in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                behind = lines[(node.end_lineno or 1) - 1].encode()[node.end_col_offset or 0 :]
                words = behind.decode().partition("#")[2].strip()
                found[node.target.id] = "" if words.startswith(_NOT_WORDS) else words
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    found[node.target.id] = " ".join(str(below.value.value).split())
    return found
