"""The windows and tools of a session for any order of steps, phases and requests."""

from collections import Counter
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.config import check_config
from rlprof.schedule import Demand, parse_steps
from rlprof.session._scribe import Scribe
from rlprof_live._demands import Asker
from tests.fakes import tools

PROPERTY = settings(max_examples=120, deadline=None)

PHASES = ("a", "b")
STEP = st.integers(0, 4)
ASK = st.tuples(
    st.just("ask"), st.integers(1, 3), st.sampled_from(["discrete", "continuous"]),
    st.none() | st.just(("b",)), STEP,
)  # fmt: skip
STEPS = st.tuples(st.just("step"), STEP)


def programs(inner):
    """Draw a training loop's calls; a step may begin inside a phase, as phases outlive steps."""
    phase = st.tuples(st.just("phase"), st.sampled_from(PHASES), inner)
    rare = st.sampled_from([("minibatch",), ("end_of_steps",)]) | ASK
    return st.lists(st.one_of(STEPS, phase, phase, rare), max_size=6)


PROGRAM = st.builds(
    lambda step, asks, rest: [*asks, step, *rest],
    STEPS, st.lists(ASK, max_size=2), programs(programs(programs(st.just([])))),
)  # fmt: skip
CONFIG = st.fixed_dictionaries({
    "steps": st.sampled_from([None, [2], [1, "3-4"], {"every": 2}, {"every": 1}, "0-3"]),
    "mode": st.sampled_from(["discrete", "continuous"]),
    "phases": st.none() | st.just(["a"]),
    "join_steps": st.booleans(),
    "tool": st.sampled_from([["fake"], ["fake", "other"], ["anywhere", "fake"]]),
})  # fmt: skip


def as_config(drawn: dict[str, Any], home) -> dict[str, Any]:
    """Make a valid config of the values drawn."""
    discrete = drawn["mode"] == "discrete"
    role = {"phases": drawn["phases"]} if discrete and drawn["phases"] else {}
    config = {key: drawn[key] for key in ("steps", "mode", "tool")}
    config |= {} if discrete else {"join_steps": drawn["join_steps"]}
    places = {"run_dir": str(home / "runs"), "scratch_dir": str(home / "scratch")}
    return {**config, **places, "roles": {"actor": role}}


class Driver:
    """Runs a program on a session and checks after each call whether it should record."""

    def __init__(self, session, config) -> None:
        self.session = session
        self.on_minibatch = session.minibatch
        self.config = config
        (self.track,) = session.tracks
        self.own = parse_steps(config["steps"])
        self.chosen = False
        """Whether the config or a request chose the current step when it began."""
        self.continuous = config["mode"] == "continuous"
        self.phases = config["roles"]["actor"].get("phases")
        self.around: list[bool] = []
        """For each open phase: whether it is to be recorded."""
        self.step_window = False
        self.asked: dict[str, int] = {}
        self.got: Counter[str] = Counter()
        self.ids = count()

    def run(self, program) -> None:
        for kind, *about in program:
            getattr(self, f"on_{kind}")(*about)
            self.compare()

    def compare(self) -> None:
        expected = any(self.around) or self.step_window
        assert expected == self.session.is_recording

    def on_step(self, number) -> None:
        if number == self.session.current_step:
            self.session.step(number)
            return
        was_open = any(self.around)
        self.session.step(number)
        demand = self.track.demand
        rule = self.track._rule
        if demand is not None:
            assert number not in self.own
            assert number >= demand.first
            assert not was_open
            self.got[demand.id] += 1
            assert self.got[demand.id] <= self.asked[demand.id]
        self.chosen = demand is not None or number in self.own
        self.continuous, self.phases = rule.mode == "continuous", rule.phases
        # While a phase's window is open, no window of a step can open.
        self.step_window = self.chosen and self.continuous and not was_open

    def on_end_of_steps(self) -> None:
        self.session.end_steps()
        self.chosen = self.step_window = False

    def on_phase(self, name, inside) -> None:
        is_one = self.chosen and not self.continuous
        is_one = is_one and (self.phases is None or name in self.phases)
        with self.session.phase(name):
            # Inside a step's window, a phase is a range of it.
            self.around.append(is_one and not self.step_window)
            self.compare()
            self.run(inside)
        self.around.pop()

    def on_ask(self, steps, mode, phases, first) -> None:
        demand = Demand(f"r{next(self.ids)}", steps, mode, phases, first)
        uses = check_config({"tool": self.config["tool"], "roles": {"actor": {}}})[1]["actor"]
        self.asked[demand.id] = steps
        Asker(self.session).ask([(self.track, demand, uses)])


@pytest.fixture(scope="module", name="home")
def _home(tmp_path_factory):
    return tmp_path_factory.mktemp("sessions")


@pytest.mark.slow
@PROPERTY
@given(drawn=CONFIG, program=PROGRAM)
def test_windows_open_exactly_where_they_are_due(home, drawn, program):
    """A window is open exactly where one is due; tools start and stop in turn with unique names."""
    tools.register()
    tools.calls.clear()
    tools.gate.set()
    config = as_config(drawn, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scribe, "export", lambda self, job: None)
        with rlprof.open(config, role="actor") as session:
            driver = Driver(session, config)
            driver.run(program)

    run = rlprof.read(session.run_dir)
    opened = Counter((capture.window.id, capture.tool) for capture in run.captures)
    for tool in config["tool"]:
        called = [call for call in tools.calls if call[0] == tool]
        moves = [call[1:3] for call in called if call[1] in ("start", "stop")]
        assert [kind for kind, _ in moves] == ["start", "stop"] * (len(moves) // 2)
        assert [name for _, name in moves[::2]] == [name for _, name in moves[1::2]]
        assert len(set(moves)) == len(moves), "a window has the name of another"
        assert {name for _, name in moves} == {name for name, which in opened if which == tool}
        times = sorted((c.opened_ns, c.closed_ns) for c in run.captures if c.tool == tool)
        assert all(closed <= begun for (_, closed), (begun, _) in pairwise(times))
    assert set(opened.values()) <= {1}
