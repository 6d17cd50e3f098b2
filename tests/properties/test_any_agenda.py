"""Which schedule rules a step, whatever order steps and requests come in."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rlprof.schedule import Agenda, Demand, Schedule, parse_steps

pytestmark = pytest.mark.slow

PROPERTY = settings(max_examples=200, deadline=None)

STEP = st.integers(0, 9)
OWN = st.lists(
    STEP | st.tuples(STEP, STEP).map(lambda pair: f"{min(pair)}-{max(pair)}"), max_size=3
) | st.sampled_from([None, {"every": 2}, {"every": 3, "first": 1, "last": 8}])
"""The config's own steps."""
MODE = st.sampled_from(["discrete", "continuous"])


class Steps(RuleBasedStateMachine):
    """Steps begin in any order, some while a window is open; requests come in at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.agenda = Agenda(Schedule(parse_steps([2, "5-6"]), "continuous", None, True))
        self.asked: list[Demand] = []
        self.got: Counter[str] = Counter()

    @rule(count=st.integers(1, 3), first=STEP, mode=MODE, phases=st.none() | st.just(("a",)))
    def ask(self, count, first, mode, phases):
        demand = Demand(f"r{len(self.asked)}", count, mode, phases, first)
        self.asked.append(demand)
        self.agenda.ask(demand)

    @rule(step=STEP, is_busy=st.booleans())
    def begin(self, step, is_busy):
        is_own = step in self.agenda.own.steps
        free = [d for d in self.asked if self.got[d.id] < d.count and d.first <= step]

        schedule, demand = self.agenda.at(step, is_busy=is_busy)

        # Nothing is taken from the config, nothing given in the middle of a window, and a step
        # that is free is given to who waits longest.
        expected = None if is_own or is_busy or not free else free[0]
        assert expected == demand
        if demand is None:
            assert self.agenda.own is schedule
            return
        self.got[demand.id] += 1
        assert [step] == [s for s in range(12) if s in schedule.steps]
        assert (demand.mode, demand.phases) == (schedule.mode, schedule.phases)

    @invariant()
    def nobody_is_forgotten(self):
        left = [demand for demand in self.asked if self.got[demand.id] < demand.count]
        assert left == list(self.agenda.waiting)


TestAgenda = Steps.TestCase
TestAgenda.__doc__ = "Each request gets its steps: the next free ones, oldest request first."
TestAgenda.settings = settings(max_examples=120, stateful_step_count=25, deadline=None)


@PROPERTY
@given(OWN, st.lists(st.tuples(st.integers(1, 3), STEP), max_size=4), st.permutations(range(12)))
def test_the_order_of_requests_changes_who_is_served_and_not_how_many(own, asked, steps):
    """However requests are ordered, as many steps are given out, none of them twice."""
    served = []
    for order in (asked, asked[::-1]):
        agenda = Agenda(Schedule(parse_steps(own)))
        for number, (count, first) in enumerate(order):
            agenda.ask(Demand(str(number), count, first=first))
        served.append([step for step in steps if agenda.at(step)[1] is not None])

    assert all(len(set(given)) == len(given) for given in served)
    assert not any(step in parse_steps(own) for given in served for step in given)
    if all(first == 0 for _, first in asked):
        assert served[0] == served[1]


@PROPERTY
@given(OWN, st.booleans(), st.lists(STEP, max_size=14))
def test_windows_of_steps_cover_what_was_asked_in_any_order(own, join_steps, steps):
    """Repeated, rolled back or skipped: at every step a window is open exactly if it is chosen."""
    schedule = Schedule(parse_steps(own), "continuous", None, join_steps)
    begun = [step for step, after in pairwise([*steps, None]) if step != after]

    window = None
    for step in begun:
        if window is not None and not window.start_step <= step < window.end_step:
            window = None
        if window is None:
            window = schedule.at_step(step)

        assert (step in schedule.steps) == (window is not None)
        assert window is None or window.start_step <= step < window.end_step
        assert window is None or join_steps or window.end_step == window.start_step + 1
        assert window is None or all(
            inside in schedule.steps for inside in range(window.start_step, window.end_step)
        )
