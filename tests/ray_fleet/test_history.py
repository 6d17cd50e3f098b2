"""Phases and waits of members outside of windows, from Ray's own record of their calls."""

import time

import pytest

import rlprof
import rlprof_ray
import rlprof_report
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import attached, train
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


class Stopwatch:
    """Sleeps in each call, and keeps the times."""

    def __init__(self):
        self.ran = []

    def update(self, step, seconds=0.02):
        start_ns = time.time_ns()
        time.sleep(seconds)
        self.ran.append((step, start_ns, time.time_ns()))

    def told(self):
        return self.ran


def phases(fleet):
    """Return the phases of members in a run, by rank, name and step."""
    found = {}
    for span in rlprof.read(fleet.run_dir).spans():
        if span.kind == "phase" and span.target.role == "actor":
            found.setdefault((span.target.rank, span.name, span.step), []).append(span)
    return found


def test_every_call_of_a_step_that_is_not_recorded_is_a_phase(ray, spawn, config, trained):
    """In a step that is not recorded, each call of an actor is a phase from Ray's record."""
    actors = [spawn(Stopwatch) for _ in range(2)]

    given = config(steps="none", roles={"actor": {"ranks": [0]}})
    fleet, _ = trained(given, actors, range(1, 6))

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
    """A live run has phases from Ray's record and, in a recorded step, those of the member."""
    actor = spawn(Trainer)
    fleet = rlprof_ray.Fleet(config(steps=[2]))
    fleet.attach(actor=[actor])
    train(ray, fleet, [actor], (1, 2, 3))

    wait_until(lambda: len(phases(fleet)) == 3)
    sources = {step: [span.attributes.get("source") for span in spans]
               for (_, _, step), spans in phases(fleet).items()}  # fmt: skip
    fleet.close()

    assert sources == {1: ["ray"], 2: ["driver"], 3: ["ray"]}
    assert rlprof.read(fleet.run_dir).problems == ()


def test_a_ray_that_does_not_show_calls_is_named_once(ray, spawn, config, monkeypatch):
    """If Ray does not show the calls of actors, the run reports this as one problem."""
    from ray._private import state

    monkeypatch.setattr(state, "_READ_TASK_EVENTS_FROM_DASHBOARD_HEAD", True, raising=False)
    actor = spawn(Trainer)

    with attached(config(steps="none", roles={"actor": {}}), actor=[actor]) as fleet:
        train(ray, fleet, [actor], (1, 2))
        wait_until(lambda: rlprof.read(fleet.run_dir).problems)

    problems = rlprof.read(fleet.run_dir).problems
    told = [one for one in problems if "does not show calls of actors" in one]
    assert len(told) == 1, problems


def test_figures_have_the_wait_that_the_report_has(ray, spawn, tmp_path):
    """Without roles every actor is followed, and `figures` give the wait that the report has."""
    actors = [spawn(Stopwatch) for _ in range(3)]
    with attached({"tool": "none", "run_dir": str(tmp_path)}, actor=actors) as fleet:
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
