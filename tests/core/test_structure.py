from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof.config._structure import BAD, Faults, join, structure
from rlprof.errors import shown

QUICK = settings(max_examples=150, deadline=None)


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
        ({"number": -7}, Every(number=-7)),
        ({"ratio": 2}, Every(ratio=2.0)),
        ({"ratio": 2.5}, Every(ratio=2.5)),
        ({"choice": 3}, Every(choice=3)),
        ({"maybe": None}, Every()),
        ({"maybe": 4}, Every(maybe=4)),
        ({"five": None}, Every(five=None)),
        ({"items": [1, 2]}, Every(items=(1, 2))),
        ({"table": {"a": 1}}, Every(table={"a": 1})),
        ({"inner": {"must": 1, "may": "x"}}, Every(inner=Inner(1, "x"))),
        ({"anything": {1: [2.5]}}, Every(anything={1: [2.5]})),
        ({"odd": 3, "small": 9}, Every(odd=3, small=9)),
        ({"odd_or_none": None}, Every()),
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
        ({"number": 2.0}, "number", "expected a whole number, got 2.0"),
        ({"number": "7"}, "number", "expected a whole number, got '7'"),
        ({"number": None}, "number", "expected a whole number, got None"),
        ({"ratio": True}, "ratio", "expected a number, got True"),
        ({"ratio": "2.5"}, "ratio", "expected a number, got '2.5'"),
        ({"ratio": float("nan")}, "ratio", "expected a finite number, got nan"),
        ({"ratio": float("-inf")}, "ratio", "expected a finite number, got -inf"),
        ({"ratio": 16**5000}, "ratio", "expected a finite number, got a value of type int"),
        ({"text": 7}, "text", "expected text, got 7"),
        ({"flag": 1}, "flag", "expected true or false, got 1"),
        ({"flag": "true"}, "flag", "expected true or false, got 'true'"),
        (
            {"choice": "tow"},
            "choice",
            "expected one of 'one', 'two', 3, got 'tow'; did you mean 'two'?",
        ),
        ({"choice": True}, "choice", "expected one of 'one', 'two', 3, got True"),
        ({"choice": 3.0}, "choice", "expected one of 'one', 'two', 3, got 3.0"),
        ({"maybe": "4"}, "maybe", "expected a whole number, got '4'"),
        ({"items": 1}, "items", "expected a list, got 1"),
        ({"items": "12"}, "items", "expected a list, got '12'"),
        ({"items": [1, "2", 3]}, "items[1]", "expected a whole number, got '2'"),
        ({"table": [1]}, "table", "expected keys and values, got [1]"),
        ({"table": {"a": "1"}}, "table.a", "expected a whole number, got '1'"),
        ({"table": {1: 1}}, "table.1", "expected text as key, got 1"),
        ({"inner": 3}, "inner", "expected keys and values, got 3"),
        ({"inner": {"may": "x"}}, "inner.must", "is missing; give it a value"),
        ({"inner": {"must": "x"}}, "inner.must", "expected a whole number, got 'x'"),
        ({"odd": 2}, "odd", "expected an odd number, got 2"),
        ({"odd_or_none": 2}, "odd_or_none", "expected an odd number, got 2"),
        ({"small": 10}, "small", "expected at most 9"),
        ({"smal": 1}, "smal", "unknown key; did you mean 'small'?"),
        ({"anzahl": 1}, "anzahl", "unknown key; write number: N"),
        (3, "", "expected keys and values, got 3"),
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


def test_a_class_without_fields_says_so():
    """A key for what has none is told that there are none."""

    @attrs.frozen
    class Empty:
        pass

    assert (Empty(), {"x": ["unknown key; there are: none"]}) == made({"x": 1}, Empty)


def test_all_faults_are_found_and_the_rest_is_kept():
    """What is wrong falls back to its default, so that the rest is checked too."""
    value, faults = made(
        {
            "number": True,
            "text": "kept",
            "items": [1, None, 3],
            "table": {"a": 1, "b": "x", "c": 3},
            "inner": {"must": "x", "mya": 1},
            "nubmer": 1,
        }
    )

    assert Every(text="kept", items=(1, 3), table={"a": 1, "c": 3}) == value
    assert list(faults) == ["number", "items[1]", "table.b", "inner.must", "inner.mya", "nubmer"]


def test_without_a_required_value_there_is_nothing():
    """A class whose required field is wrong or missing cannot be built, and says each once."""

    @attrs.frozen
    class Two:
        one: int
        other: int

    missing = ["is missing; give it a value"]
    assert made({"must": "x"}, Inner) == (BAD, {"must": ["expected a whole number, got 'x'"]})
    assert made({}, Two) == (BAD, {"one": missing, "other": missing})


def test_a_field_may_have_any_name():
    """What structures the options of a plugin takes none of their names for itself."""

    @attrs.frozen
    class Odd:
        path: int = 0
        faults: int = 0
        function: int = 0

    assert made({"path": 1, "faults": 2, "function": 3}, Odd) == (Odd(1, 2, 3), {})


def test_what_a_class_says_of_the_whole_is_a_fault_of_the_whole():
    """Fields that contradict each other are told under the path of the class."""

    @attrs.frozen
    class Pair:
        low: int = 0
        high: int = 0

        def __attrs_post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low lies above high")

    assert made({"low": 1}, Pair) == (BAD, {"": ["low lies above high"]})


def test_below_is_about_paths_not_prefixes():
    """A fault of `tools` is none of `tool`."""
    faults = Faults()
    faults.add("tools.torch[0].x", "is wrong")

    assert faults.below("tools")
    assert faults.below("tools.torch")
    assert faults.below("tools.torch[0]")
    assert not faults.below("tool")
    assert not faults.below("tools.torch[0].x.y")


def test_a_fault_is_told_once():
    """Two roles that use one tool do not double what is wrong with it."""
    faults = Faults()
    faults.add("a", "is wrong")
    faults.add("a", "is wrong")

    assert faults.found == {"a": ["is wrong"]}


@pytest.mark.parametrize(
    ("path", "key", "joined"),
    [("", "a", "a"), ("a", "b", "a.b"), ("a", 1, "a.1"), ("a", None, "a.None")],
    ids=str,
)
def test_paths_are_joined_by_dots(path, key, joined):
    """A path reads as one would write it in a shell."""
    assert joined == join(path, key)


def deep(levels: int) -> list[Any]:
    data: list[Any] = []
    for _ in range(levels):
        data = [data]
    return data


def wide(levels: int) -> list[Any]:
    """A billion laughs: each list holds the one before ten times."""
    data: list[Any] = ["lol"]
    for _ in range(levels):
        data = [data] * 10
    return data


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        ("7", "'7'"),
        ([1, "a"], "[1, 'a']"),
        ({"b": 1, "a": None}, "{'a': None, 'b': 1}"),
        (deep(10_000), "[[[[...]]]]"),
        (16**5000, "a value of type int"),
    ],
    ids=["int", "text", "list", "dict", "deep", "huge"],
)
def test_values_are_shown_short(value, text):
    """A message shows what was written, however deep or huge, and stays a line."""
    assert text == shown(value)


@pytest.mark.parametrize(
    "value", ["x" * 10**6, wide(30), list(range(10**5)), 10**4000, b"x" * 1000],
    ids=["text", "laughs", "list", "int", "bytes"],
)  # fmt: skip
def test_what_is_shown_fits_a_line(value):
    """No value fills the screen, or the memory."""
    assert len(shown(value)) <= 60


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([field.name for field in attrs.fields(Every)]) | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@pytest.mark.slow
@QUICK
@given(JSON)
def test_what_is_made_is_what_was_asked(data):
    """For any data: without a fault each value given is there unchanged; with one it is told."""
    value, faults = made(data)

    if faults:
        assert all(messages for messages in faults.values())
    else:
        asked = {key: getattr(value, key) for key in data}
        plain = attrs.asdict(value, filter=lambda field, _: field.name in asked)
        for key, item in data.items():
            given_item = tuple(item) if isinstance(item, list) and key == "items" else item
            if key == "inner" and item is not None:
                given_item = {"may": None, **item}
            shown_as = tuple(plain[key]) if key == "items" else plain[key]
            assert repr(given_item if key != "ratio" else float(item)) == repr(shown_as)
