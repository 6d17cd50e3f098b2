"""Clocks that are wrong: measured against the driver's, and taken out of what is read."""

from __future__ import annotations

import gzip
import json
import time

import pytest

import rlprof
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.faults import bare

pytestmark = pytest.mark.slow

QUARTER_S = 91 * 86400


class Astray(Trainer):
    """An actor whose wall clock is off, as far as Python sees it."""

    def __init__(self, ahead_s):
        super().__init__()
        real, real_ns = time.time, time.time_ns
        time.time = lambda: real() + ahead_s
        time.time_ns = lambda: real_ns() + int(ahead_s * 1e9)


# failures.md: member-clock
def test_a_clock_that_is_off_is_taken_out(spawn, config, trained, tmp_path):
    """Spans and traces of the member lie in the driver's phase, in what is read and drawn."""
    actors = [spawn(Trainer), spawn(Astray, -QUARTER_S)]

    fleet, out = trained(config(steps=[2]), actors)

    from rlprof_timeline import Timeline

    run = rlprof.read(fleet.run_dir)
    offsets = {p.target.rank: p.offset_ns / 1e9 for p in run.processes if p.target.role == "actor"}
    assert offsets[0] == 0
    assert offsets[1] == pytest.approx(-QUARTER_S, abs=0.5)
    spans = {"".join(s.process.split("-")[:2]): s for s in run.spans() if s.step == 2
             and s.name == "update"}  # fmt: skip
    outer = spans["driver0"]
    for name in ("actor0", "actor1"):
        assert outer.start_ns - 5e8 < spans[name].start_ns < spans[name].end_ns < outer.end_ns + 5e8
    assert out == bare((0, 0), (1, 2))
    assert [one.state for one in run.captures] == ["whole", "whole"]
    (made,) = Timeline().render(run, tmp_path, {})
    with gzip.open(made, "rt") as file:
        events = json.load(file)["traceEvents"]
    drawn = [one for one in events if one["name"] == "update" and one["ph"] == "X"]
    (first, *inner) = [one for one in drawn if one.get("args", {}).get("step") != 1]
    assert [one["cat"] for one in drawn].count("stacks") == 2
    assert len(inner) == 4  # of each member its span and the range in its trace
    for one in inner:
        assert first["ts"] - 5e5 < one["ts"]
        assert one["ts"] + one["dur"] < first["ts"] + first["dur"] + 5e5
