"""How long members wait for the slowest: as the driver says it, and as the report does."""

from __future__ import annotations

import pytest

import rlprof
import rlprof_ray
import rlprof_report
from rlprof.types import Target
from rlprof_ray._waits import Waits
from tests.ray_fleet.faults import wait_until
from tests.ray_fleet.test_history import Stopwatch

S = 1_000_000_000


def test_the_longest_wait_of_any_phase_counts():
    """The slowest less the median of the others; where all end together nobody is late."""
    waits = Waits()
    for rank, seconds in enumerate((1, 2, 5)):
        target = Target("actor", rank, 3)
        waits.add(4, "update", target, 0, seconds * S)
        waits.add(4, "reduce", target, (20 - seconds) * S, 20 * S)
        waits.add(5, "update", Target("critic"), 0, seconds * S)

    assert [waits.of(4), waits.of(4), waits.of(5)] == [3.5, None, None]


@pytest.mark.slow
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
