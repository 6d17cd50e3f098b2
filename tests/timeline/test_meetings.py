"""Collectives and barriers as a check of the clocks: told when they disagree, never moved."""

from __future__ import annotations

import pytest

from rlprof_timeline._meetings import time_of
from tests.timeline.builder import NOW, ProcessBuilder
from tests.timeline.layouts import LAYOUTS
from tests.timeline.ranks import UPDATE

APART_NS = 4_500_000


def meet(
    process: ProcessBuilder, layout: str, late_ns: int = 0, name: str = "nccl:all_reduce"
) -> None:
    """Record three collectives that end at three moments, by a clock that is *late_ns* off."""
    events = [
        {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": n * 10_000_000 + late_ns - 1000 * n,
         "dur": 2_000_000 + 1000 * n}
        for n in range(3)
    ]  # fmt: skip
    process.trace(UPDATE, [LAYOUTS[layout](event) for event in events], NOW)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["barrier", "gloo:all_reduce", "ncclDevKernel_AllReduce_Sum"])
def test_clocks_that_disagree_are_told(run, write, caplog, layout, name) -> None:
    """A rank that leaves each collective long after two others is named, with how much."""
    for rank in range(3):
        process = run.process(rank=rank, size=3)
        meet(process, layout, APART_NS if rank == 2 else 0, name)

    check = write().about["check"]

    assert (check["traces"], check["meetings"], check["largest_ns"]) == (3, 3, APART_NS)
    (apart,) = check["apart"]
    assert apart["shown"].startswith("actor-2-")
    assert (apart["by_ns"], apart["meetings"]) == (APART_NS, 3)
    (told,) = caplog.messages
    assert "its 3 collectives end 4.500 ms after those of the others" in told


def test_traces_of_several_steps_in_a_folder_are_told_to_be_so(run, write, caplog, capsys) -> None:
    """Far apart are steps and jobs rather than clocks; the figure is one that a person can read."""
    days = 341 * 86400 * 10**9
    meet(run.process(rank=0), "kineto")
    meet(run.process(rank=1), "kineto", 2 * days)

    write()

    assert [told.partition("collectives ")[2] for told in caplog.messages] == [
        f"end 341.0 days {where} those of the others, and its clock may be 1.004 ms off at most: "
        "it has recorded another step than they, or the clocks of the hosts disagree, and the "
        "timeline with them"
        for where in ("before", "after")
    ]
    assert "3 collectives end within 341.0 days" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ns", "words"),
    [(4_500_000, "4.500 ms"), (-9_000_000_000, "9000.000 ms"), (10**10, "10.0 s"),
     (7200 * 10**9, "2.0 hours"), (-3 * 86400 * 10**9, "3.0 days")],
)  # fmt: skip
def test_how_far_is_told_in_a_unit_that_fits(ns, words) -> None:
    """Short times to the microsecond."""
    assert time_of(ns) == words


def test_clocks_that_agree_are_not_told(run, write, caplog, capsys) -> None:
    """What the wire and the bounds of the clocks may take is no disagreement, and is printed."""
    for rank in range(2):
        meet(run.process(rank=rank), "kineto", 300_000 * rank)

    check = write().about["check"]

    assert (check["largest_ns"], check["apart"]) == (-150_000, [])
    assert caplog.messages == []
    assert "3 collectives end within 0.150 ms" in capsys.readouterr().out


def test_ranks_that_did_nothing_together_are_not_compared(run, write) -> None:
    """One rank, or ranks with other collectives, say nothing of the clocks."""
    meet(run.process(rank=0), "kineto")
    meet(run.process(rank=1), "kineto", name="gloo:all_reduce")

    check = write().about["check"]

    assert (check["traces"], check["largest_ns"]) == (0, None)
