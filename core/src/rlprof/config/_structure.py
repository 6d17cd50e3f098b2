"""Plain data → attrs values: every fault at once, each under its path, nothing coerced.

Separate from the values because plugins' options go through it too. Not cattrs: that turns `True`
into 1, 2.9 into 2 and 7 into '7', and stops at the first level that fails.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs

from rlprof.errors import ConfigError, closest, one_line, shown

BAD: Any = object()
"""Stands for a value that cannot be used."""

_LONGEST_KEY = 80
"""Longer ones are cut where they are shown."""
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@attrs.define
class Faults:
    """Collects *where: what is wrong; what to do*, by path."""

    source: str = "config"
    """The name of the config: its file, if it has one."""
    lines: dict[str, int] = attrs.field(factory=dict)
    """Path of a key → its line in the file."""
    found: dict[str, list[str]] = attrs.field(factory=dict)

    def add(self, path: str, message: str) -> Any:
        """Note a fault, once, and return the stand-in for the value."""
        messages = self.found.setdefault(path, [])
        if message not in messages:
            messages.append(message)
        return BAD

    def below(self, path: str) -> bool:
        """Whether *path* or anything in it has a fault."""
        return any(here == path or here.startswith((f"{path}.", f"{path}[")) for here in self.found)

    def __bool__(self) -> bool:
        return bool(self.found)

    def raise_any(self) -> None:
        """Raise one ConfigError with all of them, in the order of the file."""
        messages = [
            f"{self._place(path)}: {message}"
            for path in sorted(self.found, key=self._line)
            for message in self.found[path]
        ]
        if messages:
            raise ConfigError(messages, self.source, "rlprof check --keys explains every key")

    def _place(self, path: str) -> str:
        line = self._line(path)
        place = f"{self.source}:{line}" if line else self.source
        return f"{place}: {path}" if path else place

    def _line(self, path: str) -> int:
        """Return the line of *path*, or of the nearest thing around it; 0: it has none."""
        while path and path not in self.lines:
            path = path.rpartition("[" if path.endswith("]") else ".")[0]
        return self.lines.get(path, 0)


def join(path: str, key: object) -> str:
    """Return the path of *key* inside *path*."""
    is_plain = isinstance(key, str) and key.isprintable() and len(key) <= _LONGEST_KEY
    name = str(key) if is_plain else shown(key)
    return f"{path}.{name}" if path else name


def structure(
    cls: type[Any], data: Any, *, path: str, faults: Faults,
    places: Mapping[Any, str] | None = None,
) -> Any:  # fmt: skip
    """Make a *cls* of *data*, after adding all faults to *faults*.

    Wrong values are left out, so that the rest can still be checked; if nothing is left to build,
    the result is `BAD`. A field's `metadata={"parse": function}` replaces
    the check by its type; the function raises ValueError. A class attribute `ELSEWHERE` maps keys
    of other profilers to ours. *places*: keys that stand under another path.
    """
    if not isinstance(data, Mapping):
        hint = "; write {} for the defaults" if data is None else ""
        return faults.add(path, f"expected keys and values, got {shown(data)}{hint}")
    fields, hints = attrs.fields_dict(cls), typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, given in data.items():
        here = join((places or {}).get(key, path), key)
        if key not in fields:
            faults.add(here, _unknown(key, list(fields), getattr(cls, "ELSEWHERE", {})))
            continue
        parse, validate = fields[key].metadata.get("parse"), fields[key].validator
        if given is None and fields[key].default is None:
            value = None
        elif parse is None:
            value = _value(hints[key], given, here, faults)
        else:
            value = _tried(here, faults, parse, given)
        if validate is not None and value is not BAD:
            # Called here too, for attrs stops at the first field that is wrong.
            is_bad = _tried(here, faults, validate, None, fields[key], value) is BAD
            value = BAD if is_bad else value
        if value is not BAD:
            values[key] = value
    required = [name for name, one in fields.items() if one.default is attrs.NOTHING]
    for name in required:
        if name not in data:
            faults.add(join(path, name), "is missing; give it a value")
    return BAD if {*required} - values.keys() else _tried(path, faults, cls, **values)


def _tried(
    path: str, faults: Faults, function: Callable[..., Any], /, *args: Any, **values: Any
) -> Any:
    """Call a parser, a validator or a class; an exception is a fault.

    Only the first argument is shown: attrs appends the whole field.
    """
    try:
        return function(*args, **values)
    except (ValueError, TypeError) as exc:
        return faults.add(path, one_line(exc.args[0] if exc.args else exc, longest=500))


def _value(hint: Any, value: Any, path: str, faults: Faults) -> Any:
    """Check *value* against the type *hint* of its field."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):  # options with more types bring a `parse`
        one = next(each for each in inner if each is not type(None))
        is_off = value == "none" and (attrs.has(one) or one is str)  # null is for programs
        if (value is None or is_off) and type(None) in inner:
            return None
        return _value(one, value, path, faults)
    if origin is Literal:
        if any(type(value) is type(choice) and value == choice for choice in inner):
            return value
        choices, close = ", ".join(map(repr, inner)), closest(value, [str(one) for one in inner])
        return faults.add(path, f"expected one of {choices}, got {shown(value)}{close}")
    if origin is tuple:
        return _list(inner[0], value, path, faults)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(inner[1], value, path, faults)
    if attrs.has(hint):
        return structure(hint, value, path=path, faults=faults)
    if hint is float and type(value) in (int, float):  # no coercion: every int is a number
        if -sys.float_info.max <= value <= sys.float_info.max:
            return float(value)
        return faults.add(path, f"expected a finite number, got {shown(value)}")
    if type(value) is not hint:
        return faults.add(path, f"expected {_NAMES.get(hint, hint)}, got {shown(value)}")
    return value


def _list(hint: Any, value: Any, path: str, faults: Faults) -> Any:
    if not isinstance(value, (list, tuple)):
        return faults.add(path, f"expected a list, got {shown(value)}")
    made = [_value(hint, item, f"{path}[{index}]", faults) for index, item in enumerate(value)]
    return tuple(item for item in made if item is not BAD)


def _mapping(hint: Any, value: Any, path: str, faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        is_list = isinstance(value, list) and "." not in path  # of roles, or of tools
        example = ", ".join(f"{name}: {{}}" for name in value) if is_list else ""
        hint = f"; write {{{example}}}" if example else ""
        return faults.add(path, f"expected keys and values, got {shown(value)}{hint}")
    made = {}
    for key, item in value.items():
        here = join(path, key)
        if type(key) is str:
            made[key] = _value(hint, item, here, faults)
        else:
            faults.add(here, f"expected text as key, got {shown(key)}")
    return {key: item for key, item in made.items() if item is not BAD}


def _unknown(key: Any, known: list[str], elsewhere: Mapping[str, str]) -> str:
    if key in elsewhere:
        return f"unknown key; write {elsewhere[key]}"
    return f"unknown key{closest(key, known) or '; there are: ' + (', '.join(known) or 'none')}"
