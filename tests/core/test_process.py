"""Identity and life of processes, their clocks, and names of files."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import Here, _process, is_alive, read_clock
from rlprof.types import Capture, Clock, Target, Window
from rlprof_run import clock_at
from tests.cases import cases

SAY = """
import attrs, json, sys
from rlprof.rundir import Here, _process
print(json.dumps([attrs.asdict(Here.now()), _process.born_ns()]), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_another_process_is_alive_until_it_is_killed():
    """A process counts as alive until it is killed, and as dead while it is a zombie."""
    called_ns = time.time_ns()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SAY], **pipes)
    said, born_ns = json.loads(process.stdout.readline())
    here = Here(**said)

    answered_ns, before = time.time_ns(), is_alive(here)
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    as_zombie = is_alive(here)
    process.communicate()
    after = is_alive(here)

    assert (before, as_zombie, after) == (True, False, False)
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    assert called_ns - 2 * tick_ns < born_ns < answered_ns


def test_the_state_of_a_process_elsewhere_is_unknown(monkeypatch):
    """A process of another host, boot or container is unknown; one that refuses a signal lives."""

    def refuse(pid, number):
        raise PermissionError

    here = Here.now()
    monkeypatch.setattr(os, "kill", refuse)

    others = [attrs.evolve(here, **{one: "x"}) for one in ("host", "boot_id", "pid_namespace")]
    assert [is_alive(one) for one in (here, *others)] == [True, None, None, None]


EPOCH = 1_790_857_026_000_000_000
SECOND = 1_000_000_000
PROPERTY = settings(max_examples=200, deadline=None)

AT_0 = Clock(EPOCH, 0, 10)
STEPPED = Clock(EPOCH + 70 * SECOND, 10 * SECOND, 30)
STEPPED_BACK = Clock(EPOCH - 50 * SECOND, 10 * SECOND, 30)


@pytest.mark.parametrize(("stepped", "gain_s"), [(STEPPED, 60), (STEPPED_BACK, -60)])
def test_a_clock_that_was_set_is_not_interpolated(stepped, gain_s):
    """After the wall clock was set, the nearer pair counts, and its bound is the jump."""
    before = clock_at([AT_0, stepped], 4 * SECOND)
    after = clock_at([AT_0, stepped], 6 * SECOND)

    assert before == (EPOCH + 4 * SECOND, 60 * SECOND + 30)
    assert (EPOCH + (6 + gain_s) * SECOND, 60 * SECOND + 30) == after


@st.composite
def drifting_clocks(draw):
    """Draw pairs of clocks that drift at another rate between any two pairs, and the true clock."""
    spans = draw(st.lists(st.integers(10**6, 100 * SECOND), min_size=1, max_size=6))
    rates = draw(st.lists(st.integers(-499, 499), min_size=len(spans), max_size=len(spans)))
    start = draw(st.integers(0, 10**15))
    knots, offsets = [start], [EPOCH]
    for span, rate in zip(spans, rates, strict=True):
        knots.append(knots[-1] + span)
        offsets.append(offsets[-1] + span * rate // 1_000_000)

    def truth(at: int) -> int:
        index = max(0, sum(knot <= at for knot in knots[:-1]) - 1)
        return at + offsets[index] + (at - knots[index]) * rates[index] // 1_000_000

    return [misread(draw, knot, truth) for knot in knots], truth


@st.composite
def stepped_clocks(draw):
    """Draw two pairs of clocks, one of which was set in between, and the true clock."""
    at = draw(st.integers(10_000, 10 * SECOND - 10_000))  # not while a pair is read
    by = draw(st.integers(-1000 * SECOND, 1000 * SECOND) | st.integers(-(10**7), 10**7))

    def truth(now: int) -> int:
        return now + EPOCH + (by if now >= at else 0)

    return [misread(draw, knot, truth) for knot in (0, 10 * SECOND)], truth


def misread(draw, at, truth):
    """Read both clocks with a pause in between, as a thread that loses the CPU does."""
    bound = draw(st.integers(10, 10_000))
    return Clock(truth(at + draw(st.integers(-bound // 2, bound // 2))), at, bound)


@pytest.mark.slow
@given(drifting_clocks() | stepped_clocks(), st.data())
@PROPERTY
def test_the_true_time_lies_within_the_bound(clocks, data):
    """The true time lies within the bound for any drift below 500 ppm and any jump of the clock."""
    pairs, truth = clocks
    reach = 100 * SECOND if len(pairs) > 2 else 0
    low, high = pairs[0].monotonic_ns - reach, pairs[-1].monotonic_ns + reach
    at = data.draw(st.integers(low, high) | st.sampled_from([pair.monotonic_ns for pair in pairs]))

    found, bound = clock_at(pairs, at)

    assert bound >= abs(truth(at) - found)


def test_the_tightest_of_three_readings_counts(monkeypatch):
    """Of three readings of the clocks, the one with the shortest pause counts."""
    monotonic, realtime = iter([0, 900, 1000, 1010, 2000, 2300]), iter([1, 2, 3])
    fake = SimpleNamespace(monotonic_ns=lambda: next(monotonic), time_ns=lambda: next(realtime))
    monkeypatch.setattr(_process, "time", fake)

    pair = read_clock()

    assert Clock(realtime_ns=2, monotonic_ns=1005, bound_ns=10) == pair


@cases(
    "target, window, stem",
    (Target("actor", 3, 8), Window(7, 8), "actor_rank3-of-8_step7_step_pid42"),
    (
        Target("actor", 3, 8, coordinates={"tp": 1, "p/p": 0}),
        Window(7, 10),
        "actor_rank3-of-8_tp1_p-p-e9a9f8130_step7-9_step_pid42",
    ),
    (Target("rollout", replica=2), Window(7, 8, "gen", 1), "rollout_replica2_step7_gen.1_pid42"),
    ids=["rank", "coordinates", "replica"],
)
def test_a_stem_identifies_its_capture(target, window, stem):
    """A file's stem names its target, coordinates, window and pid."""
    capture = Capture("run", target, window, "torch", host="h", pid=42)

    assert stem == capture.stem


def test_the_stub_has_the_names_of_the_package():
    """The type stub lists the names of rlprof.__all__ and imports each of them."""
    stub = ast.parse(Path(rlprof.__file__).with_suffix(".pyi").read_text())
    imported = {
        alias.asname or alias.name
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (promised,) = (
        ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)
    )

    assert sorted(promised) == sorted(rlprof.__all__)
    assert set(promised) <= imported
    assert all(hasattr(rlprof, name) for name in imported)
