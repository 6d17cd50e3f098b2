"""Phases of members outside of windows, from Ray's own record of their calls, on real Ray."""

from __future__ import annotations

import time

import pytest

import rlprof
import rlprof_ray
from rlprof_ray._calls import Call, Record
from rlprof_ray._history import _Phase, _stretches
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.faults import wait_until

pytestmark = pytest.mark.slow


class Stopwatch:
    """Does its work, and keeps when it did."""

    def __init__(self):
        self.ran = []

    def update(self, step, seconds=0.02):
        start_ns = time.time_ns()
        time.sleep(seconds)
        self.ran.append((step, start_ns, time.time_ns()))

    def told(self):
        return self.ran


def phases(fleet):
    """Return the members' phases by member and step, as the run tells of them."""
    found = {}
    for span in rlprof.read(fleet.run_dir).spans():
        if span.kind == "phase" and span.target.role == "actor":
            found.setdefault((span.target.rank, span.name, span.step), []).append(span)
    return found


def test_every_call_of_a_step_that_is_not_recorded_is_a_phase(ray, spawn, config):
    """Of two actors one is to be recorded: each call of both has a phase of its own."""
    actors = [spawn(Stopwatch) for _ in range(2)]

    with rlprof_ray.Fleet(config(steps="none", roles={"actor": {"ranks": [0]}})) as fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps(range(1, 6)):
            with fleet.phase("update"):
                ray.get([actor.update.remote(step) for actor in actors])

    found = phases(fleet)
    for rank, actor in enumerate(actors):
        before_ns = 0
        for step, start_ns, end_ns in ray.get(actor.told.remote()):
            (span,) = found.pop((rank, "update", step))
            assert before_ns < span.start_ns <= start_ns
            assert end_ns <= span.end_ns
            assert span.attributes == {"source": "ray", "call": "Stopwatch.update"}
            before_ns = span.end_ns
    assert found == {}
    run = rlprof.read(fleet.run_dir)
    assert (run.missing, run.problems) == ((), ())
    assert [(str(one.target), one.state) for one in run.processes] == [
        ("actor 0/2", "ended"), ("actor 1/2", "ended"), ("driver 0/1", "ended"),
    ]  # fmt: skip


def test_a_live_run_has_phases_and_a_recorded_step_has_the_members_own(ray, spawn, config):
    """They are written while the run goes on, so one that is killed keeps them."""
    actor = spawn(Trainer)
    fleet = rlprof_ray.Fleet(config(steps=[2]))
    fleet.attach(actor=[actor])
    for step in fleet.steps((1, 2, 3)):
        with fleet.phase("update"):
            ray.get(actor.update.remote(step))

    wait_until(lambda: len(phases(fleet)) == 3)
    sources = {step: [span.attributes.get("source") for span in spans]
               for (_, _, step), spans in phases(fleet).items()}  # fmt: skip
    fleet.close()

    assert sources == {1: ["ray"], 2: [None], 3: ["ray"]}
    assert rlprof.read(fleet.run_dir).problems == ()


# failures.md: actor-gone
def test_an_actor_that_dies_has_phases_until_then(ray, spawn, config):
    """The other goes on, what it computes is the same, and closing does not wait for the dead."""
    others = [spawn(Trainer, rank) for rank in (0, 1)]
    bare = [ray.get(others[1].update.remote(step)) for step in (1, 2)]
    actors = [spawn(Trainer, rank) for rank in (0, 1)]

    with rlprof_ray.Fleet(config(steps="none")) as fleet:
        fleet.attach(actor=actors)
        told = []
        for step in fleet.steps((1, 2)):
            with fleet.phase("update"):
                if step == 1:
                    ray.get(actors[0].update.remote(step))
                    time.sleep(0.3)  # its worker tells Ray ten times a second here
                    actors[0].die.remote()
                told.append(ray.get(actors[1].update.remote(step)))

    assert bare == told
    found = phases(fleet)
    assert [span.attributes["call"] for span in found[0, "update", 1]] == ["Trainer.update"]
    assert (0, "update", 2) not in found
    assert {(1, "update", 1), (1, "update", 2)} < set(found)


def test_both_ways_to_read_rays_record_tell_the_same(ray, spawn):
    """`ray.timeline()`, which is public, stands in where the private way is gone."""
    actor = spawn(Stopwatch)
    ray.get([actor.update.remote(step, 0.01) for step in range(3)])
    time.sleep(0.3)
    actors = {actor._actor_id.hex()}
    public = Record()
    public._is_private = False

    privately, again = (record := Record()).news(actors), record.news(actors)
    publicly = public.news(actors)

    assert [call.name for call in privately] == ["Stopwatch.update"] * 3
    assert again == []
    for here, there in zip(privately, publicly, strict=True):
        assert (there.worker, there.name) == (here.worker, here.name)
        assert abs(there.start_ns - here.start_ns) < 1000
        assert abs(there.end_ns - here.end_ns) < 2000


CALLS = {
    "two at a time are one stretch": ([(0, 40), (30, 60)], [(0, 60)]),
    "one after the other are two": ([(0, 40), (50, 60)], [(0, 40), (50, 60)]),
    "a call keeps its own times": ([(-10, 40)], [(-10, 40)]),
    "half of it must lie in the phase": ([(-41, 40)], []),
    "one that goes on for many phases is of none": ([(-1000, 2000)], []),
    "more than 64 become one": ([(n, n + 0.5) for n in range(70)], [(0, 69.5)]),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_become_stretches_of_a_phase(case):
    """Whatever ran for the better part in a phase of 0 to 100 ns, on a clock 1000 ns ahead."""
    given, expected = CALLS[case]
    calls = [Call("w", "T.f", 1000 + start, 1000 + end) for start, end in given]
    phase = _Phase("update", 1, 0, 0, 100, is_step=False)

    found = _stretches(calls, phase, 1000)

    assert [(one.start_ns - 1000, one.end_ns - 1000) for one in found] == expected
