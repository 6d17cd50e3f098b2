"""Tools that record one thread, on actors that have one; and windows that a member came late to."""

from __future__ import annotations

import pytest

import rlprof
import rlprof_ray
from rlprof.errors import ConfigError
from tests.fakes import tools
from tests.ray_fleet.actors import AsyncTrainer, Trainer
from tests.ray_fleet.conftest import rows

pytestmark = pytest.mark.slow

KINDS = {"threaded": (Trainer, {"max_concurrency": 3}), "async": (AsyncTrainer, {})}


def train(ray, fleet, actors):
    for step in fleet.steps((1, 2)):
        with fleet.phase("update"):
            totals = ray.get([actor.update.remote(step) for actor in actors])
    return totals


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_of_a_thread_is_refused_where_there_is_no_such_thread(spawn, config, kind):
    """Before the run, for windows are opened beside the work there; the error says what fits."""
    tools.register()
    cls, options = KINDS[kind]
    actors = [spawn(Trainer), spawn(cls, 1, **options)]

    with (
        rlprof_ray.Fleet(config(tool="fake")) as fleet,
        pytest.raises(ConfigError) as told,
    ):
        fleet.attach(actor=actors)

    assert "roles.actor.tool: fake records the thread it is started on" in str(told.value)
    assert "actor 1/2 is an async or threaded actor" in str(told.value)
    assert "use a tool that records the process, or make it a plain actor" in str(told.value)


def test_what_shows_only_in_the_member_is_refused_there(ray, spawn, config):
    """Torch without its other threads is a tool of a thread; the run says so, and goes on."""
    actors = [spawn(Trainer, 0), spawn(AsyncTrainer, 1)]
    options = {"torch": {"contents": ["cpu"], "all_threads": False}}

    with rlprof_ray.Fleet(config(tool="torch", tools=options, steps=[2])) as fleet:
        fleet.attach(actor=actors)
        train(ray, fleet, actors)

    assert rows(fleet) == ["2/update actor 0/2 whole", "2/update actor 1/2 failed"]
    (failed,) = (one for one in rlprof.read(fleet.run_dir).captures if one.target.rank == 1)
    assert any("use a tool that records the process" in note for note in failed.notes)


def test_who_comes_late_to_a_window_is_named(ray, spawn, config):
    """An ordered actor that is still at work begins when it can; how late is in the manifest."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]

    with rlprof_ray.Fleet(config(steps=[2])) as fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps((1, 2)):
            before = actors[0].update.remote(step, 1.0)
            with fleet.phase("update"):
                ray.get([actor.update.remote(step) for actor in actors])
            ray.get(before)

    busy, free = rlprof.read(fleet.run_dir).captures
    (note,) = busy.notes
    assert note.startswith(("began 0.", "began 1."))
    assert note.endswith("s after it was asked to: it was busy")
    assert free.notes == ()
