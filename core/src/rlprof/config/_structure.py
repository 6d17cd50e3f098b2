"""Plain data → attrs values: every fault at once, each under its path, nothing coerced.

Separate from the values because plugins' options go through it too. Not cattrs: that turns `True`
into 1, 2.9 into 2 and 7 into '7', and stops at the first level that fails.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

_DEEPEST = 30
"""YAML anchors can make data that contain themselves."""

_NAMES = {int: "int", float: "number", str: "text", bool: "true or false"}


@attrs.define
class Faults:
    """Collects *where: what is wrong; what to do*, by path."""

    found: dict[str, list[str]] = attrs.field(factory=dict)

    def add(self, path: str, message: str) -> Any:
        """Note a fault and return what stands for the value."""
        self.found.setdefault(path, []).append(message)
        return BAD

    def below(self, path: str) -> bool:
        """Whether anything is wrong with *path* or what is in it."""
        return any(here == path or here.startswith((f"{path}.", f"{path}[")) for here in self.found)

    def __bool__(self) -> bool:
        return bool(self.found)


BAD: Any = object()
"""Stands for a value that cannot be used."""


def join(path: str, key: object) -> str:
    """Name what stands under *key* in what stands under *path*."""
    return f"{path}.{key}" if path else str(key)


def structure(
    cls: type[Any], data: Any, *, path: str, faults: Faults, elsewhere: Mapping[str, str] = {}
) -> Any:
    """Make a *cls* of *data*, having added all that is wrong to *faults*.

    What is wrong is left out, so that what depends on the rest can still be checked; where that
    leaves nothing to build, the result is `BAD`. A field's `metadata={"parse": function}` replaces
    the check by its type; the function raises ValueError. *elsewhere* maps keys other profilers
    use to what they are called here.
    """
    if not isinstance(data, Mapping):
        return faults.add(path, f"expected keys and values, got {_show(data)}")
    if path.count(".") > _DEEPEST:
        return faults.add(path, "is nested too deep; does it contain itself?")
    fields = {field.name: field for field in attrs.fields(cls)}
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in data.items():
        here = join(path, key)
        if key not in fields:
            faults.add(here, _unknown(key, list(fields), elsewhere))
            continue
        parse = fields[key].metadata.get("parse")
        if parse is None:
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
            if name not in data:
                faults.add(join(path, name), "is missing")
            return BAD
    return _tried(lambda _: cls(**values), None, path=path, faults=faults)


def _tried(function: Callable[[Any], Any], value: Any, *, path: str, faults: Faults) -> Any:
    """Call a parser, a validator or a class; what it raises is a fault.

    Only the first argument is shown: attrs appends the whole field.
    """
    try:
        return function(value)
    except (ValueError, TypeError) as exc:
        return faults.add(path, str(exc.args[0] if exc.args else exc))


def _value(hint: Any, value: Any, *, path: str, faults: Faults) -> Any:
    """Check *value* against the type *hint* of its field."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
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
    if hint is float and type(value) is int:  # no coercion: every int is a number
        return float(value)
    if type(value) is not hint or (hint is float and value - value != 0):
        return faults.add(path, f"expected {_NAMES.get(hint, hint)}, got {_show(value)}")
    return value


def _one_of(inner: tuple[Any, ...]) -> Any:
    """Return the one type of an optional; options with real unions bring a `parse`."""
    return next(hint for hint in inner if hint is not type(None))


def _literal(allowed: tuple[Any, ...], value: Any, *, path: str, faults: Faults) -> Any:
    if any(value == choice and type(value) is type(choice) for choice in allowed):
        return value
    choices = ", ".join(repr(choice) for choice in allowed)
    close = _closest(value, [str(choice) for choice in allowed])
    return faults.add(path, f"expected one of {choices}, got {_show(value)}{close}")


def _tuple(inner: Any, value: Any, *, path: str, faults: Faults) -> Any:
    if not isinstance(value, (list, tuple)):
        return faults.add(path, f"expected a list, got {_show(value)}")
    items = [
        _value(inner, item, path=f"{path}[{index}]", faults=faults)
        for index, item in enumerate(value)
    ]
    return tuple(item for item in items if item is not BAD)


def _mapping(inner: Any, value: Any, *, path: str, faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        return faults.add(path, f"expected keys and values, got {_show(value)}")
    made = {}
    for key, item in value.items():
        if type(key) is not str:
            made[key] = faults.add(join(path, key), f"expected text as key, got {_show(key)}")
        else:
            made[key] = _value(inner, item, path=join(path, key), faults=faults)
    return {key: item for key, item in made.items() if item is not BAD}


def _unknown(key: Any, known: list[str], elsewhere: Mapping[str, str]) -> str:
    if key in elsewhere:
        return f"is another profiler's word; here: {elsewhere[key]}"
    close = _closest(key, known)
    return f"unknown key{close or '; there are: ' + ', '.join(known)}"


def _closest(value: Any, known: list[str]) -> str:
    close = difflib.get_close_matches(str(value), known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
