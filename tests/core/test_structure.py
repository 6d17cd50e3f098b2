from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import attrs
import pytest

from rlprof.config._structure import BAD, Faults, structure
from rlprof.errors import shown


@attrs.frozen
class Inner:
    must: int
    may: str | None = None


def _odd(value: Any) -> int:
    if type(value) is not int or value % 2 == 0:
        raise ValueError(f"expected an odd number, got {value!r}")
    return value


def _small(_: Any, __: Any, value: int) -> None:
    if value > 9:
        raise ValueError("expected at most 9", "and what attrs appends")


@attrs.frozen
class Every:
    """One field of each kind."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {"anzahl": "number: N"}

    path: int = 0  # one of ours is called so, too
    number: int = 0
    ratio: float = 0.0
    text: str = ""
    flag: bool = False
    choice: Literal["one", "two", 3] = "one"
    maybe: int | None = None
    five: int | None = 5
    items: tuple[int, ...] = ()
    table: Mapping[str, int] = attrs.field(factory=dict)
    inner: Inner | None = None
    anything: Any = None
    odd: int = attrs.field(default=1, metadata={"parse": _odd})
    odd_or_none: int | None = attrs.field(default=None, metadata={"parse": _odd})
    small: int = attrs.field(default=0, validator=_small)


def made(data: Any, cls: type = Every) -> tuple[Any, dict[str, list[str]]]:
    """Structure *data*; return the value and the faults."""
    faults = Faults()
    return structure(cls, data, path="", faults=faults), faults.found


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, Every()),
        ({"path": -7}, Every(path=-7)),
        ({"ratio": 2}, Every(ratio=2.0)),
        ({"choice": 3}, Every(choice=3)),
        ({"five": None}, Every(five=None)),
        ({"items": [1, 2]}, Every(items=(1, 2))),
        ({"table": {"a": 1}}, Every(table={"a": 1})),
        ({"inner": {"must": 1, "may": "x"}}, Every(inner=Inner(1, "x"))),
        ({"anything": {1: [2.5]}}, Every(anything={1: [2.5]})),
        ({"odd": 3, "small": 9}, Every(odd=3, small=9)),
        (MappingProxyType({"text": "x"}), Every(text="x")),
    ],
    ids=str,
)
def test_what_fits_is_taken(data, expected):
    """Every kind of field takes the values of its type."""
    assert (expected, {}) == made(data)


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({"number": True}, "number", "expected a whole number, got True"),
        ({"number": "7"}, "number", "expected a whole number, got '7'"),
        ({"ratio": "2.5"}, "ratio", "expected a number, got '2.5'"),
        ({"ratio": float("nan")}, "ratio", "expected a finite number, got nan"),
        ({"text": 7}, "text", "expected text, got 7"),
        ({"flag": 1}, "flag", "expected true or false, got 1"),
        (
            {"choice": "tow"},
            "choice",
            "expected one of 'one', 'two', 3, got 'tow'; did you mean 'two'?",
        ),
        ({"choice": True}, "choice", "expected one of 'one', 'two', 3, got True"),
        ({"maybe": "4"}, "maybe", "expected a whole number, got '4'"),
        ({"items": "12"}, "items", "expected a list, got '12'"),
        ({"items": [1, "2", 3]}, "items[1]", "expected a whole number, got '2'"),
        ({"table": {"a": "1"}}, "table.a", "expected a whole number, got '1'"),
        ({"table": {1: 1}}, "table.1", "expected text as key, got 1"),
        ({"inner": {"may": "x"}}, "inner.must", "is missing; give it a value"),
        ({"odd_or_none": 2}, "odd_or_none", "expected an odd number, got 2"),
        ({"small": 10}, "small", "expected at most 9"),
        ({"anzahl": 1}, "anzahl", "unknown key; write number: N"),
        (None, "", "expected keys and values, got None; write {} for the defaults"),
    ],
    ids=shown,
)
def test_what_does_not_fit_is_a_fault_under_its_path(data, path, message):
    """Nothing is coerced: a value of another type is refused, where it stands."""
    _, faults = made(data)

    assert {path: [message]} == faults


def test_an_unknown_key_near_to_none_lists_what_there_is():
    """Who is far off is shown all keys."""
    _, faults = made({"zzz": 1}, Inner)

    assert faults["zzz"] == ["unknown key; there are: must, may"]


@pytest.mark.parametrize(
    "value", ["x" * 10**6, list(range(10**5)), 10**4000], ids=["text", "list", "int"]
)
def test_what_is_shown_fits_a_line(value):
    """No value that a message shows fills the screen."""
    assert len(shown(value)) <= 60


def test_without_a_required_value_there_is_nothing():
    """A class whose required field is wrong or missing cannot be built, and says each once."""

    @attrs.frozen
    class Two:
        one: int
        other: int

    missing = ["is missing; give it a value"]
    assert made({"must": "x"}, Inner) == (BAD, {"must": ["expected a whole number, got 'x'"]})
    assert made({}, Two) == (BAD, {"one": missing, "other": missing})
