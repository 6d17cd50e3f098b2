"""Phases and waits of members outside of windows, from Ray's own record of their calls."""

from __future__ import annotations

import time

import pytest

import rlprof
import rlprof_ray
import rlprof_report
from rlprof_ray._calls import Record
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


def test_a_driver_has_the_wait_that_the_report_has(ray, spawn, tmp_path):
    """Without one word about roles: every actor is followed, and nothing is recorded."""
    actors = [spawn(Stopwatch) for _ in range(3)]
    with rlprof_ray.Fleet({"tool": "none", "run_dir": str(tmp_path)}) as fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps((1, 2)):
            with fleet.phase("update"):
                ray.get([actor.update.remote(step, 0.05 + 0.2 * (n == 2))
                         for n, actor in enumerate(actors)])  # fmt: skip
        wait_until(lambda: "rlprof/wait_slowest_s" in fleet.figures())
        found = fleet.figures()

    run = rlprof.read(fleet.run_dir)
    (ranks,) = rlprof_report.analyse(run).steps[-1].ranks
    assert (found["rlprof/step"], ranks.slowest, run.captures) == (2.0, 2, ())
    assert found["rlprof/wait_slowest_s"] == pytest.approx(ranks.wait_s, abs=1e-6)
