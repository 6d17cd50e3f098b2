import sys

import pytest

from rlprof.schedule import Schedule, Steps, parse_steps

HORIZON = 40


def as_set(steps: Steps) -> set[int]:
    return {step for step in range(HORIZON) if step in steps}


@pytest.mark.parametrize(
    ("value", "chosen", "words"),
    [
        ([2, 5], {2, 5}, "2, 5"),
        (3, {3}, "3"),
        ("2-4", {2, 3, 4}, "2-4"),
        (" 2 - 4 ", {2, 3, 4}, "2-4"),
        (["2-4", 5, "3-8", 3], {2, 3, 4, 5, 6, 7, 8}, "2-8"),
        ({"every": 10}, {0, 10, 20, 30}, "every 10 from 0"),
        ({"every": 10, "first": 2, "last": 21}, {2, 12}, "every 10 from 2 to 12"),
        ({"every": 1, "first": 38}, {38, 39}, "38-"),
        ("none", set(), "none"),
        (None, set(), "none"),
    ],
    ids=str,
)
def test_steps_are_read_in_all_their_forms(value, chosen, words):
    """Lists, ranges with their end, both mixed, rules and none choose what they say."""
    steps = parse_steps(value)

    assert chosen == as_set(steps)
    assert words == str(steps)
    assert bool(chosen) is bool(steps)


FORMS = "expected a list like [2, 5], a range like '2-4', {every: 100, first: 2} or none, got "


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([2, "x"], FORMS + "'x'"),
        ("4-2", "'4-2' ends before it begins; did you mean '2-4'?"),
        ({}, "every is missing; a rule has every, first, last: {every: 100, first: 2}"),
        ({"every": 2, "frist": 1}, "unknown key 'frist'; a rule has every, first, last"),
        ({"every": 0}, "every: expected at least 1, got 0"),
        ({"every": 2, "first": 5, "last": 4}, "last 4 lies before first 5; no step is chosen"),
    ],
    ids=str,
)
def test_other_steps_are_refused_in_words(value, message):
    """What is no step, range or rule is refused with what was expected; nothing is coerced."""
    with pytest.raises(ValueError) as error:
        parse_steps(value)

    assert message == str(error.value)


def test_a_stretch_may_have_no_end():
    """Every step from some on: the end is told at once, not counted up to."""
    steps = parse_steps({"every": 1, "first": 3})

    assert sys.maxsize == steps.stretch_end(5)
    assert Schedule(steps, "continuous", None, join_steps=True).at_step(3).id == "3-"
