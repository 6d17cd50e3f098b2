"""Plain data → attrs values: every fault at once, each under its path, nothing coerced.

Separate from the values because plugins' options go through it too. Not cattrs: that turns `True`
into 1, 2.9 into 2 and 7 into '7', and stops at the first level that fails.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

from rlprof.errors import closest, one_line, shown

DEEPEST = 30
"""YAML anchors can make data that contain themselves."""

_LONGEST_KEY = 80
"""Longer ones are cut where they are shown."""

_TOO_DEEP = "is nested too deep; does it contain itself?"

_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@attrs.define
class Faults:
    """Collects *where: what is wrong; what to do*, by path."""

    found: dict[str, list[str]] = attrs.field(factory=dict)

    def add(self, path: str, message: str) -> Any:
        """Note a fault, once, and return what stands for the value."""
        told = self.found.setdefault(path, [])
        if message not in told:
            told.append(message)
        return BAD

    def below(self, path: str) -> bool:
        """Whether anything is wrong with *path* or what is in it."""
        return any(here == path or here.startswith((f"{path}.", f"{path}[")) for here in self.found)

    def __bool__(self) -> bool:
        return bool(self.found)


BAD: Any = object()
"""Stands for a value that cannot be used."""


def join(path: str, key: object) -> str:
    """Return the path of *key* inside *path*."""
    name = shown(key)
    if isinstance(key, str) and key.isprintable() and len(key) <= _LONGEST_KEY:
        name = key
    return f"{path}.{name}" if path else name


def structure(cls: type[Any], data: Any, *, path: str, faults: Faults) -> Any:
    """Make a *cls* of *data*, having added all that is wrong to *faults*.

    What is wrong is left out, so that what depends on the rest can still be checked; where that
    leaves nothing to build, the result is `BAD`. A field's `metadata={"parse": function}` replaces
    the check by its type; the function raises ValueError. A class attribute `ELSEWHERE` maps keys
    other profilers use to what they are called here.
    """
    if not isinstance(data, Mapping):
        hint = "; write {} for the defaults" if data is None else ""
        return faults.add(path, f"expected keys and values, got {shown(data)}{hint}")
    if path.count(".") > DEEPEST:
        return faults.add(path, _TOO_DEEP)
    fields = {field.name: field for field in attrs.fields(cls)}
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in data.items():
        here = join(path, key)
        if key not in fields:
            faults.add(here, _unknown(key, list(fields), getattr(cls, "ELSEWHERE", {})))
            continue
        parse = fields[key].metadata.get("parse")
        if value is None and fields[key].default is None:
            made = None
        elif parse is None:
            made = _value(hints[key], value, path=here, faults=faults)
        else:
            made = _tried(parse, value, path=here, faults=faults)
        validator = fields[key].validator
        if made is not BAD and validator is not None:
            # Called here too, for attrs stops at the first field that is wrong.
            told = _tried(partial(validator, None, fields[key]), made, path=here, faults=faults)
            made = BAD if told is BAD else made
        if made is not BAD:
            values[key] = made
    for name, field in fields.items():
        if field.default is attrs.NOTHING and name not in values:
            if name not in data and not faults.below(join(path, name)):
                faults.add(join(path, name), "is missing; give it a value")
            return BAD
    return _tried(lambda _: cls(**values), None, path=path, faults=faults)


def _tried(function: Callable[[Any], Any], value: Any, *, path: str, faults: Faults) -> Any:
    """Call a parser, a validator or a class; what it raises is a fault.

    Only the first argument is shown: attrs appends the whole field.
    """
    try:
        return function(value)
    except (ValueError, TypeError) as exc:
        return faults.add(path, one_line(exc.args[0] if exc.args else exc, longest=500))


def _value(hint: Any, value: Any, *, path: str, faults: Faults) -> Any:
    """Check *value* against the type *hint* of its field."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        deep = _is_deep(value, DEEPEST, {})
        return faults.add(path, _TOO_DEEP) if deep else value
    if origin in (typing.Union, types.UnionType):
        is_off = value == "none" and attrs.has(_one_of(inner))  # for people; null is for programs
        if (value is None or is_off) and type(None) in inner:
            return None
        return _value(_one_of(inner), value, path=path, faults=faults)
    if origin is typing.Literal:
        return _literal(inner, value, path=path, faults=faults)
    if origin is tuple:
        return _tuple(inner[0], value, path=path, faults=faults)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(inner[1], value, path=path, faults=faults)
    if attrs.has(hint):
        return structure(hint, value, path=path, faults=faults)
    if hint is float and type(value) in (int, float):  # no coercion: every int is a number
        try:
            made = float(value)
        except OverflowError:
            made = math.inf
        if not math.isfinite(made):
            return faults.add(path, f"expected a finite number, got {shown(value)}")
        return made
    if type(value) is not hint:
        return faults.add(path, f"expected {_NAMES.get(hint, hint)}, got {shown(value)}")
    return value


def _is_deep(value: Any, left: int, fine: dict[int, int]) -> bool:
    """Whether *value* has more than *left* levels; *fine* holds what was found to have fewer."""
    if not isinstance(value, (Mapping, list, tuple)) or fine.get(id(value), left + 1) <= left:
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    if left == 0 or any(_is_deep(item, left - 1, fine) for item in inner):
        return True
    fine[id(value)] = left
    return False


def _one_of(inner: tuple[Any, ...]) -> Any:
    """Return the one type of an optional; options with real unions bring a `parse`."""
    return next(hint for hint in inner if hint is not type(None))


def _literal(allowed: tuple[Any, ...], value: Any, *, path: str, faults: Faults) -> Any:
    if any(type(value) is type(choice) and value == choice for choice in allowed):
        return value
    choices = ", ".join(repr(choice) for choice in allowed)
    close = closest(value, [str(choice) for choice in allowed])
    return faults.add(path, f"expected one of {choices}, got {shown(value)}{close}")


def _tuple(inner: Any, value: Any, *, path: str, faults: Faults) -> Any:
    if not isinstance(value, (list, tuple)):
        return faults.add(path, f"expected a list, got {shown(value)}")
    items = [
        _value(inner, item, path=f"{path}[{index}]", faults=faults)
        for index, item in enumerate(value)
    ]
    return tuple(item for item in items if item is not BAD)


def _mapping(inner: Any, value: Any, *, path: str, faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        return faults.add(path, f"expected keys and values, got {shown(value)}")
    made = {}
    for key, item in value.items():
        if type(key) is not str:
            made[key] = faults.add(join(path, key), f"expected text as key, got {shown(key)}")
        else:
            made[key] = _value(inner, item, path=join(path, key), faults=faults)
    return {key: item for key, item in made.items() if item is not BAD}


def _unknown(key: Any, known: list[str], elsewhere: Mapping[str, str]) -> str:
    if key in elsewhere:
        return f"is another profiler's word; here: {elsewhere[key]}"
    close = closest(key, known)
    return f"unknown key{close or '; there are: ' + (', '.join(known) or 'none')}"
