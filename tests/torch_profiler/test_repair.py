"""What is no JSON is repaired event by event, and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof_torch import _repair

QUICK = settings(max_examples=150, deadline=None)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def lines(args: str, name: str = "n") -> str:
    """Write an event in the layout of torch 2.13."""
    return (
        f'  {{\n    "ph": "X",\n    "cat": "cpu_op",\n    "name": "{name}",\n    "pid": 7,\n'
        f'    "tid": 3,\n    "ts": 1.500,\n    "dur": 2.250\n    ,\n'
        f'    "args": {{\n      {args}\n    }}\n  }}'
    )


@pytest.mark.parametrize("text", ["[NaN]", "[-Infinity]", '["\x01"]', '["\\ud800"]', "[" * 99_999])
def test_strict_refuses_what_other_readers_refuse(text):
    """Everything that json.loads lets pass and RFC 8259 or its readers do not is a ValueError."""
    with pytest.raises(ValueError):
        _repair.strict(text)


def test_strict_takes_whole_surrogate_pairs():
    """An emoji escaped as two halves is good JSON."""
    assert _repair.strict('["\\ud83d\\ude00"]') == ["😀"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ('"a": ["he said "x", twice", 1]', {"a": ['he said "x", twice', 1]}),
        ('"desc": "de/"sc", "n": 1', {"desc": 'de"sc', "n": 1}),
        ('"dir": "a/", "x": NaN', {"dir": "a/", "x": None}),
        ('"path": "C:\\dir\\x"', {"path": "C:\\dir\\x"}),
        ('"tab": "a\tb"', {"tab": "a\tb"}),
        ('"half": "a\\ud800b", "pair": "\\ud83d\\ude00"', {"half": "a\ufffdb", "pair": "😀"}),
        (
            '"occupancy": nan, "x": -inf, "nano": "nan"',
            {"occupancy": None, "x": None, "nano": "nan"},
        ),
        ('"a": , "b": 1', {"unreadable": '"a": , "b": 1'}),
    ],
)
def test_args_are_mended_or_kept_as_text(args, expected):
    """Damaged args are read as they were meant; what cannot be read stays there to be seen."""
    event = json.loads(_repair.event(lines(args)))

    assert expected == event["args"]
    assert tuple(event[key] for key in ("name", "pid", "ts", "dur")) == ("n", 7, 1.5, 2.25)


def test_escaped_names_are_not_escaped_again():
    """A Kineto that escapes quotes itself (2026) is left alone."""
    text = lines('"a": 1', name='say \\"hi\\"')

    assert text == _repair.event(text)


def test_forged_keys_are_found():
    """A name that closes its own quotes leaves valid JSON, yet is no sound event."""
    forged = lines('"a": 1', name='x", "pid": 3, "y": "z')
    assert json.loads(forged)["pid"] == 7

    assert _repair.is_forged(forged)
    assert not _repair.is_forged(lines('"a": 1'))
    assert json.loads(_repair.event(forged))["name"] == 'x", "pid": 3, "y": "z'


def test_thread_names_are_repaired():
    """Names of threads come from the user too (prctl) and stand in the args of an event."""
    text = '{\n    "ph": "M",\n    "name": "thread_name",\n    "ts": 1.5,\n    "pid": 1,\n'
    text += '    "tid": 2,\n    "args": {\n      "name": "thread 2 (a "b", "c)"\n    }\n  }'

    assert json.loads(_repair.event(text))["args"]["name"] == 'thread 2 (a "b", "c)'


@pytest.mark.parametrize("text", ["", "{", "[1]", "nonsense", '{"ph": "X", "pid": }'])
def test_what_is_no_event_is_none(text):
    """Text that holds no object is given up, never guessed at."""
    assert _repair.event(text) is None


@QUICK
@given(values=st.lists(TEXT, max_size=4))
def test_any_strings_in_args_leave_the_event_in_place(values):
    """Unescaped strings in the args never cost the event nor its time and place."""
    values = [value.replace("\n", "") for value in values]

    event = _repair.strict(_repair.event(lines(", ".join(f'"k": "{value}"' for value in values))))

    assert tuple(event[key] for key in ("name", "pid", "ts", "dur")) == ("n", 7, 1.5, 2.25)


def test_members_are_read_as_kineto_writes_them():
    """Values of many lines, odd commas and spoilt lines side by side: each is judged alone."""
    text = """
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "numSms": 104
    , "maxShared": 65536
    }
  ],
      "k"ey": "a/", /"b/": /"c",
      "broken": {"a": ,
      "n": NaN,
  "list": [
    "a "b" c",
    {
      "id": 1
    }
  ],
  "last": "x"
"""

    found = _repair.members(text)

    assert {key: json.loads(value) for key, value in found.values.items()} == {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "numSms": 104, "maxShared": 65536}],
        'k"ey': 'a", "b": "c',
        "n": None,
        "list": ['a "b" c', {"id": 1}],
        "last": "x",
    }
    assert (found.repaired, found.dropped) == (3, 1)


def test_members_of_one_line_are_read():
    """JSON that somebody else wrote has no lines to go by."""
    found = _repair.members('"a": 1, "b": {"c": [2]}, "d": "x, y", ')

    assert found.values == {"a": "1", "b": '{"c": [2]}', "d": '"x, y"'}
    assert (found.repaired, found.dropped) == (0, 0)


@QUICK
@given(text=st.one_of(TEXT, st.text('"\\,:{}[] \na1', max_size=60)))
def test_members_of_any_text_are_strict(text):
    """Whatever stands in the head, reading it ends, raises nothing and gives strict values."""
    found = _repair.members(text)

    for key, value in found.values.items():
        assert isinstance(key, str)
        _repair.strict(value)
