"""Which thread of an actor records: tools bound to the working thread, and late windows."""

import asyncio
import gzip
import json
import time
from collections import Counter
from types import SimpleNamespace

import pytest

import rlprof
from rlprof import Target, Window
from rlprof_ray._crew import Crew
from rlprof_ray._messages import Answer
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import ACTOR, attached, own_spans, rows
from tests.ray_fleet.faults import bare
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


class Learner:
    """An actor that takes one call after another."""

    def work(self, name):
        import torch

        with torch.profiler.record_function(name):
            torch.ones(8).sum()

    def sleep(self, seconds, sign):
        sign.touch()
        time.sleep(seconds)


class AsyncLearner(Learner):
    """A training worker as frameworks have it: one coroutine method makes the actor async."""

    async def update_weights(self):
        pass


class GroupedLearner(Learner):
    """An actor whose work has its own thread."""

    def work(self, name):
        super().work(name)

    work.__ray_concurrency_group__ = "io"  # as ray.method sets it


def events(fleet):
    run = rlprof.read(fleet.run_dir)
    ((artifact,),) = (capture.artifacts for capture in run.captures)
    trace = json.loads(gzip.decompress((run.path / artifact.path).read_bytes()))
    return {event.get("name") for event in trace["traceEvents"]}


# failures.md: actor-busy
def test_a_window_that_begins_after_its_phase_is_not_whole(ray, spawn, config):
    """A busy actor opens its windows too late for their phases, and the run says so of each."""
    actor = spawn(Learner)

    with attached(config(steps=[1, 2]), actor=[actor]) as fleet:
        actor.sleep.remote(1, fleet.run_dir / "busy")
        for step in fleet.steps((1, 2)):
            with fleet.phase("update"):
                late = [actor.sleep.remote(0.1, fleet.run_dir / "late")] if step == 2 else []
        ray.get(late)

    first, second = rlprof.read(fleet.run_dir).captures
    assert (first.state, second.state) == ("partial", "whole")  # it made a call in the second
    assert "start: it began after its phase had ended" in first.notes


# failures.md: npu-options
def test_a_tool_of_a_thread_is_refused_on_a_threaded_actor(spawn, config, trained):
    """A tool that is bound to a thread fails on a threaded actor, with a remedy."""
    actors = [spawn(Trainer, 0), spawn(Trainer, 1, max_concurrency=2)]

    fleet, _ = trained(config(tool="bound", steps=[2]), actors)

    assert rows(fleet) == ["2/update actor 0/2 whole", "2/update actor 1/2 failed"]
    (failed,) = (one for one in rlprof.read(fleet.run_dir).captures if one.target.rank == 1)
    assert any("use a tool that records the process" in note for note in failed.notes)


@pytest.mark.parametrize("kind", [Learner, AsyncLearner, GroupedLearner])
def test_a_window_holds_the_calls_of_its_phase_and_no_others(ray, spawn, config, kind):
    """A window holds the calls of its phase and none before; on one thread also none after."""
    has_groups = kind is GroupedLearner
    tools = {"torch": {"contents": ["cpu"], "all_threads": has_groups}}
    actor = spawn(kind, **({"concurrency_groups": {"io": 1}} if has_groups else {}))

    with attached(config(tool="torch", tools=tools, steps=[1]), actor=[actor]) as fleet:
        for _ in fleet.steps((1,)):
            before = actor.work.remote("before")
            if kind is not Learner:  # its calls have no order
                ray.get(before)
            with fleet.phase("update"):
                ray.get([actor.work.remote("inside") for _ in range(3)])
            ray.get([actor.work.remote("after") for _ in range(3)])

    assert rows(fleet) == ["1/update actor 0/1 whole"]
    others = {"before"} if has_groups else {"before", "after"}
    assert events(fleet) & {"inside", *others} == {"inside"}


def test_a_busy_event_loop_begins_its_window_late(ray, spawn, config, tmp_path):
    """The driver waits until `start_timeout_s`; the capture notes that the actor was busy."""
    actor = spawn(AsyncLearner)

    with attached(config(steps=[1, 2], limits={"start_timeout_s": 0.2}), actor=[actor]) as fleet:
        for step in fleet.steps((1, 2)):
            busy = actor.sleep.remote(1.5, tmp_path / "busy") if step == 1 else []
            wait_until((tmp_path / "busy").exists)
            with fleet.phase("update"):
                ray.get(actor.work.remote("inside"))
            ray.get(busy)

    first, second = rlprof.read(fleet.run_dir).captures
    assert any("not answered within start_timeout_s" in note for note in first.notes)
    assert any("it was busy" in note for note in first.notes)
    assert second.state == "whole"


def test_the_time_that_a_tool_takes_to_start_is_not_late():
    """Lateness is measured by the driver's clock, and excludes the time of the tool's start."""
    told = []
    session = SimpleNamespace(write=lambda *_, seconds, **__: told.append(seconds))
    crew = SimpleNamespace(tools=["a"], session=session)
    member = SimpleNamespace(offset_ns=5 * 10**9, target=Target("actor", 0))
    ask = SimpleNamespace(window=Window(1, 2), member=member, what="start", sent_ns=10**9)

    for took_s in (2.0, 1.0):
        Crew._note_if_late(crew, ask, Answer("", 8 * 10**9, took_s))

    assert told == [1.0]


ROLES = {"actor": ACTOR, "agent": {"ranks": "all", "tool": []}}
COUNT = 20


class Agent:
    """Runs many trajectories at once; its code refers to no fleet and no session."""

    async def rollout(self, step, count):
        return sum(await asyncio.gather(*(self._one(step, number) for number in range(count))))

    async def _one(self, step, number):
        async with rlprof.trajectory(f"{step}/{number}") as path:
            for turn in range(2):
                with path.turn(turn):
                    async with path.request():
                        await asyncio.sleep(number % 5 / 1000)
        return number**2


def test_spans_of_agents_have_the_step_and_their_trajectory(ray, spawn, config):
    """Spans of an agent have their trajectory and, in the recorded step, the step's number."""
    agents, actor, told = [spawn(Agent), spawn(Agent)], spawn(Trainer), []

    with attached(config(steps=[2], roles=ROLES), actor=[actor], agent=agents) as fleet:
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("rollout"):
                sums = ray.get([agent.rollout.remote(step, COUNT) for agent in agents])
            with fleet.phase("update"):
                told.append([*sums, ray.get(actor.update.remote(step))])

    total = sum(number**2 for number in range(COUNT))
    assert told == [[total, total, *out] for out in bare((0,), (1, 2, 3))]
    assert rows(fleet) == ["2/update actor 0/1 whole"]
    run = rlprof.read(fleet.run_dir)
    assert run.problems == run.skipped == run.missing == ()
    own = [span for span in own_spans(fleet) if span.target.role == "agent"]
    phases = Counter((span.name, span.step) for span in own if span.kind == "phase")
    assert phases == {("rollout", 2): 2, ("update", 2): 2}
    spans = [span for span in own if span.kind == "span"]
    for span in spans:
        assert span.step == (2 if span.attributes["trajectory"].startswith("2/") else None)
    seen = Counter((one.attributes["trajectory"], one.target.rank, one.name) for one in spans)
    ids = {f"{step}/{number}" for step in (1, 2, 3) for number in range(COUNT)}
    counts = {"trajectory": 1, "turn": 2, "request": 2}
    assert seen == {(one, rank, name): counts[name] for one in ids for rank in (0, 1)
                    for name in counts}  # fmt: skip
