from __future__ import annotations

import sys
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlprof.schedule import Schedule, Steps, parse_steps
from rlprof.types import Window
from rlprof_cli.plan import between

QUICK = settings(max_examples=150, deadline=None)
HORIZON = 40

STEP = st.integers(0, HORIZON - 1)
ITEM = st.one_of(
    STEP.map(lambda step: (step, {step})),
    st.tuples(STEP, STEP).map(sorted).map(lambda b: (f"{b[0]}-{b[1]}", set(range(b[0], b[1] + 1)))),
)
RULE = st.tuples(st.integers(1, 9), STEP, st.none() | STEP).filter(
    lambda rule: rule[2] is None or rule[1] <= rule[2]
)
RANGES = st.lists(
    st.tuples(STEP, STEP, st.integers(1, 4)).map(lambda r: range(r[0], r[1], r[2])), max_size=4
).map(tuple)

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**17, 10**19)
    | st.builds(lambda: 16**5000)
    | st.floats()
    | st.text(max_size=6)
    | st.from_regex(r"\s*\d{0,3}\s*-\s*\d{0,3}", fullmatch=True)
    | st.sampled_from(["all", "none", "2-4", "0-999999999999999999"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from(["every", "first", "last", "frist", 3]), inner)
    ),
    max_leaves=8,
)


def as_set(steps: Steps) -> set[int]:
    return {step for step in range(HORIZON) if step in steps}


@pytest.mark.parametrize(
    ("value", "chosen", "words"),
    [
        ([2, 5], {2, 5}, "2, 5"),
        ((5, 2), {2, 5}, "2, 5"),
        (3, {3}, "3"),
        ("2-4", {2, 3, 4}, "2-4"),
        (" 2 - 4 ", {2, 3, 4}, "2-4"),
        ("4-4", {4}, "4"),
        ([7, "2-4"], {2, 3, 4, 7}, "2-4, 7"),
        (["2-4", 5, "3-8", 3], {2, 3, 4, 5, 6, 7, 8}, "2-8"),
        ({"every": 10}, {0, 10, 20, 30}, "every 10 from 0"),
        ({"every": 10, "first": 2, "last": 22}, {2, 12, 22}, "every 10 from 2 to 22"),
        ({"every": 10, "first": 2, "last": 21}, {2, 12}, "every 10 from 2 to 12"),
        ({"every": 1, "first": 38}, {38, 39}, "38-"),
        ({"every": 1, "first": 38, "last": None}, {38, 39}, "38-"),
        (MappingProxyType({"every": 30}), {0, 30}, "every 30 from 0"),
        ([], set(), "none"),
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
        (True, FORMS + "True"),
        (2.0, FORMS + "2.0"),
        ("7", FORMS + "'7'"),
        (-1, FORMS + "-1"),
        ([2, "x"], FORMS + "'x'"),
        ([[2]], FORMS + "[2]"),
        ([{"every": 2}], FORMS + "{'every': 2}"),
        (10**18, FORMS + "1000000000000000000"),
        ("0-1000000000000000000", FORMS + "'0-1000000000000000000'"),
        (16**5000, FORMS + "a value of type int"),
        ("4-2", "'4-2' ends before it begins; did you mean '2-4'?"),
        ({}, "every is missing; a rule has every, first, last: {every: 100, first: 2}"),
        ({"every": 2, "frist": 1}, "unknown key 'frist'; a rule has every, first, last"),
        ({"every": "2"}, "every: expected a whole number, got '2'"),
        ({"every": None}, "every: expected a whole number, got None"),
        ({"every": True}, "every: expected a whole number, got True"),
        ({"every": 2.9}, "every: expected a whole number, got 2.9"),
        ({"every": 0}, "every: expected at least 1, got 0"),
        ({"every": 2, "first": None}, "first: expected a whole number, got None"),
        ({"every": 2, "first": -1}, "first: expected at least 0, got -1"),
        (
            {"every": 2, "last": 10**18},
            "last: expected at most 999999999999999999, got 1000000000000000000",
        ),
        (
            {"every": 2, "first": 5, "last": 4},
            "last 4 lies before first 5; no step is chosen",
        ),
    ],
    ids=lambda value: str(value) if value != 16**5000 else "16**5000",
)
def test_other_steps_are_refused_in_words(value, message):
    """What is no step, range or rule is refused with what was expected; nothing is coerced."""
    with pytest.raises(ValueError) as error:
        parse_steps(value)

    assert message == str(error.value)


@pytest.mark.slow
@QUICK
@given(JUNK)
def test_anything_is_steps_or_a_value_error(value):
    """No data whatever make the parser, or what it returns, fail in another way."""
    try:
        steps = parse_steps(value)
    except ValueError:
        return

    assert isinstance(str(steps), str)
    assert isinstance(0 in steps, bool)
    assert steps.stretch_end(0) >= 1


@pytest.mark.slow
@QUICK
@given(st.lists(ITEM, max_size=6))
def test_a_list_chooses_what_its_items_choose(items):
    """Items may overlap, adjoin and come in any order; the ranges are apart and sorted."""
    expected = set().union(*(chosen for _, chosen in items))

    steps = parse_steps([item for item, _ in items])

    assert expected == as_set(steps)
    assert all(a.stop < b.start for a, b in zip(steps.ranges, steps.ranges[1:], strict=False))


@QUICK
@given(RULE)
def test_a_rule_chooses_every_nth(rule):
    """The first step counts, and the last where the rhythm meets it."""
    every, first, last = rule
    end = HORIZON - 1 if last is None else last

    steps = parse_steps({"every": every, "first": first, "last": last})

    assert {s for s in range(first, end + 1) if (s - first) % every == 0} == as_set(steps)


@pytest.mark.slow
@QUICK
@given(RANGES, STEP, STEP)
def test_between_lists_the_chosen_ones(ranges, first, last):
    """What `rlprof plan` lists is membership, with both ends."""
    steps = Steps(ranges)

    assert sorted(s for s in as_set(steps) if first <= s <= last) == list(
        between(steps, first, last)
    )


@pytest.mark.slow
@QUICK
@given(RANGES, STEP)
def test_a_stretch_ends_at_the_first_step_not_chosen(ranges, step):
    """Whatever ranges and rules make up the steps, the end of a stretch is as counted by hand."""
    steps = Steps(ranges)
    chosen = {s for r in ranges for s in r}

    expected = next(s for s in range(step + 1, HORIZON + 2) if s not in chosen)

    assert expected == steps.stretch_end(step)


def test_a_stretch_may_have_no_end():
    """Every step from some on: the end is told at once, not counted up to."""
    steps = parse_steps({"every": 1, "first": 3})

    assert sys.maxsize == steps.stretch_end(5)
    assert Schedule(steps, "continuous", None, join_steps=True).at_step(3).id == "3-"


@pytest.mark.parametrize(
    ("schedule", "step", "window"),
    [
        (Schedule(parse_steps("2-4"), "continuous"), 3, Window(3, 4)),
        (Schedule(parse_steps("2-4"), "continuous"), 5, None),
        (Schedule(parse_steps("2-4"), "continuous", None, join_steps=True), 2, Window(2, 5)),
        (Schedule(parse_steps("2-4"), "continuous", None, join_steps=True), 3, Window(3, 5)),
        (Schedule(parse_steps("2-4"), "continuous", None, join_steps=True), 1, None),
        (Schedule(parse_steps("2-4"), "discrete"), 3, None),
        (Schedule(), 0, None),
    ],
    ids=["chosen", "other", "stretch", "resumed inside", "before", "discrete", "nothing"],
)
def test_steps_open_windows_in_continuous_mode(schedule, step, window):
    """A step chosen is a window, a stretch is one if steps are joined; discrete steps are none."""
    assert window == schedule.at_step(step)


@pytest.mark.parametrize(
    ("schedule", "step", "window"),
    [
        (Schedule(parse_steps([2])), 2, Window(2, 3, "gen", 1)),
        (Schedule(parse_steps([2])), 3, None),
        (Schedule(parse_steps([2])), None, None),
        (Schedule(parse_steps([2]), "discrete", ("gen",)), 2, Window(2, 3, "gen", 1)),
        (Schedule(parse_steps([2]), "discrete", ("update",)), 2, None),
        (Schedule(parse_steps([2]), "continuous"), 2, None),
        (Schedule(), 2, None),
    ],
    ids=["chosen", "other", "no step", "named", "not named", "continuous", "nothing"],
)
def test_phases_open_windows_in_discrete_mode(schedule, step, window):
    """A phase of a chosen step is a window if no phases are named, or it is."""
    assert window == schedule.at_phase(step, "gen", 1)


@pytest.mark.slow
@QUICK
@given(st.lists(ITEM, max_size=6), st.booleans())
def test_windows_cover_each_chosen_step_once(items, join_steps):
    """Going through the steps, continuous windows record the chosen ones: all, once, only those."""
    steps = parse_steps([item for item, _ in items])
    schedule = Schedule(steps, "continuous", None, join_steps)

    recorded: list[int] = []
    windows = []
    for step in range(HORIZON):
        if not recorded or step > recorded[-1]:
            window = schedule.at_step(step)
            if window is not None:
                windows.append(window)
                recorded += range(window.start_step, window.end_step)

    assert sorted(as_set(steps)) == recorded
    if join_steps:
        assert len(steps.ranges) == len(windows)
