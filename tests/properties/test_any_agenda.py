"""Which schedule rules a step, whatever order steps and requests come in."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rlprof.schedule import Agenda, Demand, Schedule, parse_steps

pytestmark = pytest.mark.slow

STEP = st.integers(0, 9)
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
