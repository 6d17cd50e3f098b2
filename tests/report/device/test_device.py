"""Figures of traces whose events have known figures."""

import json
import re
from pathlib import Path

import attrs
import pytest

import rlprof
from rlprof_report import analyse
from rlprof_report.device._device import device_of, json_bytes
from rlprof_report.device._findings import device_findings, late_in
from rlprof_report.device._trace import Stretch, figures_of
from rlprof_report.device.values import Idle, LateRank, MemoryPeak
from rlprof_report.values.step import Step
from tests.cases import cases
from tests.report.device.made import EPOCH_NS, Windows, kernel, operator, text_of, trace
from tests.report.folder import Driven

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(name="figures")
def _figures(tmp_path):
    """Return a function that writes a trace of events and returns its figures."""
    return lambda *events, **how: figures_of(trace(tmp_path / "t", *events), **how)


def test_idle_time_has_a_cause(figures):
    """Idle time is the host's before a launch and the device's after it; short gaps are apart."""
    found = figures(
        kernel("a", 0, 100, launch=0),
        kernel("b", 200, 100, launch=150),  # 50 us, and the 10 of a launch; 40 us waiting
        kernel("c", 305, 100, launch=10),  # short
        kernel("d", 455, 100, launch=20),  # 50 us waiting
        kernel("e", 655, 100),  # 100 us, no launch in the trace
        kernel("f", 763, 100, launch=756),  # 8 us launch-bound
    )

    assert found.idle == Idle(68e-6, 90e-6, 5e-6, 100e-6)
    assert found.unlaunched == 1
    assert found.notes == ("launched before the recording began: 1 of 6 device events",)


def test_idle_time_in_a_cuda_graph_has_no_known_cause(figures):
    """Idle time before a later kernel of a CUDA graph has no known cause."""
    found = figures(
        kernel("a", 0, 100, launch=0, correlation=1),
        kernel("b", 200, 100, launch=150, correlation=2),
        kernel("c", 400, 100, correlation=2),
    )

    assert found.idle == Idle(0.0, 0.0, 0.0, 200e-6)
    assert found.graph_kernels == 2
    assert found.notes == ("idle before 2 kernels of CUDA graphs has no known cause",)


def test_figures_count_only_the_window(figures):
    """Figures count kernels and operators within the window only, cut at its edges."""
    found = figures(
        kernel("before", 0, 100),
        kernel("over the edge", 150, 100),
        kernel("inside", 300, 100),
        kernel("after", 600, 100),
        operator("op", 150, 100),
        stretch=Stretch(EPOCH_NS + 200_000, EPOCH_NS + 500_000),
    )

    assert found.temporal.window_s == pytest.approx(200e-6)
    assert {name: one.ns for name, one in found.kernels.items()} == {
        "over the edge": 50_000, "inside": 100_000,
    }  # fmt: skip
    assert found.operators["op"].ns == 50_000


def test_waits_alone_are_no_sign_of_a_wrong_clock(figures):
    """A trace of nothing but waits has no note about its clock."""
    window = Stretch(EPOCH_NS, EPOCH_NS + 500_000)
    assert figures(kernel("wait", 9, 1, cat="cuda_sync"), stretch=window).notes == ()


def test_the_time_of_an_operator_excludes_those_it_calls(figures):
    """The time of an operator excludes the operators that it calls, on each thread."""
    found = figures(
        operator("outer", 0, 100),
        operator("inner", 10, 50),
        operator("leaf", 20, 20),
        operator("inner", 70, 10),
        operator("outer", 200, 10),
        operator("leaf", 0, 7, thread=2),
    )

    assert {name: (one.ns, one.count) for name, one in found.operators.items()} == {
        "outer": (50_000, 2), "inner": (40_000, 2), "leaf": (27_000, 2),
    }  # fmt: skip
    assert found.temporal is None


def test_peak_memory_is_found_for_each_device(figures):
    """Each device has its peaks of allocated and reserved memory within the window."""

    def memory(at, allocated, reserved, kind=1, number=0):
        args = {"Total Allocated": allocated, "Total Reserved": reserved, "Device Type": kind,
                "Device Id": number}  # fmt: skip
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": at, "args": args}

    found = figures(
        memory(0, 900, 900), memory(100, 500, 600), memory(200, 700, 650),
        memory(300, 100, 800), memory(150, 5, 0, kind=0, number=-1),
        stretch=Stretch(EPOCH_NS + 50_000, EPOCH_NS + 500_000),
    )  # fmt: skip

    assert found.memory == (MemoryPeak("cpu", 5, 0), MemoryPeak("cuda:0", 700, 800))


def test_a_real_trace_has_the_figures_that_hta_prints():
    """Compute time, idle time and longest kernel of a real trace agree with HTA's."""
    wanted = json.loads((DATA / "hta.json").read_text())["gpu_alexnet"]

    found = figures_of(DATA / "gpu_alexnet.json.gz")

    longest = max(found.kernels, key=lambda kernel: found.kernels[kernel].ns)
    assert found.temporal.compute_s * 1e6 == pytest.approx(wanted["compute_us"], rel=1e-3)
    assert found.temporal.idle_s * 1e6 == pytest.approx(wanted["idle_us"], rel=1e-2)
    assert [longest, found.kernels[longest].ns / 1000] == wanted["longest"]


def rank_of(wait, *, launch=None, last=None):
    """Return a trace of a rank whose collectives take *wait* us, 20 us less in turn *last* of 3."""
    events = []
    for turn in range(10):
        at, took = turn * 1000, wait - 20 * (turn % 3 == last)
        events += kernel("gemm", at, 300, launch=None if launch is None else at - launch)
        events += kernel("ncclDevKernel_AllReduce_Sum", at + 900 - took, took, launch=at + 1)
    return text_of(events)


def test_each_trace_is_shown_and_added_to_its_role(tmp_path):
    """Each trace is a capture of the report, and the figures of its role are sums."""
    run = Windows(tmp_path)
    for rank in range(2):
        run.add(rank_of(100), rank=rank)
    run.add(text_of([operator("op", 0, 50)]), role="rollout")

    found = device_of(run.read())

    assert [(one.window, one.target, one.device_events) for one in found.captures] == [
        ("1/update", "actor 0/2", 20), ("1/update", "actor 1/2", 20),
        ("1/update", "rollout 0/2", 0),
    ]  # fmt: skip
    actor, rollout = found.roles
    assert (actor.role, actor.captures, rollout.captures) == ("actor", 2, 0)
    assert actor.temporal.compute_s == pytest.approx(2 * 10 * 300e-6)
    assert [(one.name, one.count) for one in actor.kernels] == [
        ("gemm", 20), ("ncclDevKernel_AllReduce_Sum", 20),
    ]  # fmt: skip
    assert rollout.temporal is None
    assert rollout.operators[0].total_s == pytest.approx(50e-6)
    assert json_bytes(run.read()) == 3 * 12_000


def test_the_rank_that_waits_least_came_last(tmp_path):
    """The rank with the shortest collectives is a finding, with the seconds others wait."""
    run = Windows(tmp_path)
    for step in (1, 2):
        for rank in range(2):
            run.add(rank_of(100 if rank else 500), rank=rank, step=step)

    found = device_of(run.read())
    findings = device_findings(found)

    assert found.late[:2] == (
        LateRank("actor", "1/update", 1, pytest.approx(4e-3), 10, 10),
        LateRank("actor", "2/update", 1, pytest.approx(4e-3), 10, 10),
    )
    assert [one.late_s for one in found.late[2:]] == [0.0, 0.0]
    (late,) = [one for one in findings if "the last to reach" in one.title]
    assert late.title == "actor: rank 1 is the last to reach collectives, and the others wait 4 ms."
    assert late.seconds == pytest.approx(4e-3)
    assert late.evidence[0] == "This was so in 20 of 20 collectives, in 2 windows."
    step = Step(1, 0.0, 0.1, "clean", (), 0.0)
    assert late_in(found, step) == ()  # 4 ms of 100 are no cause
    few = attrs.evolve(
        found, late=[attrs.evolve(one, votes=6 - 2 * one.rank) for one in found.late]
    )
    assert late.title in [one.title for one in device_findings(few)]  # by far the latest


def test_a_role_that_compiles_is_named(tmp_path):
    """The time in which `torch.compile` compiles is a finding, and nested parts count once."""
    run, parts = Windows(tmp_path), [("outer", 0, 4e5), ("inner", 1e5, 1e5), ("inner", 2e6, 1e6)]
    events = [operator(f"{name} (dynamo_timed)", *times) for name, *times in parts]
    for rank in range(2):
        run.add(text_of([*events, operator("aten::mm", 5e5, 1e5)]), rank=rank)

    (found,) = device_findings(device_of(run.read()))

    assert found.title == "actor: torch.compile compiles for 0.40 s, 40% of update."


def test_ranks_that_are_late_by_turns_are_named(tmp_path):
    """Ranks that are last by turns are named together, by their host or their numbers."""
    run, others = Windows(tmp_path / "a"), Windows(tmp_path / "b")
    for rank in range(6):
        trace = rank_of(120 if rank > 2 else 500, last=rank % 3 if rank > 2 else None)
        run.add(trace, rank=rank, host=f"node-{rank // 3}")
        others.add(trace, rank=rank, host=f"node-{rank % 3}")

    for made, who in (run, "the 3 ranks on node-1"), (others, "ranks 3-5"):
        titles = [one.title for one in device_findings(device_of(made.read()))]
        assert f"actor: {who} are the last to reach collectives" in [
            one.split(",")[0] for one in titles
        ]


def test_ranks_that_change_with_the_window_are_no_finding(tmp_path):
    """A rank that is last in one window only is no finding; replicas are not compared."""
    run, replicas = Windows(tmp_path / "a"), Windows(tmp_path / "b")
    for step in (1, 2):
        for rank in range(2):
            run.add(rank_of(100 if rank == step % 2 else 500), rank=rank, step=step)
            name = {"role": "rollout", "rank": rank * 2, "replica": rank}
            replicas.add(rank_of(100 if rank else 500), step=step, **name)

    found = device_findings(device_of(run.read()))

    assert [one for one in found if "the last to reach" in one.title] == []
    assert device_of(replicas.read()).late == ()


def test_exposed_communication_and_a_slow_host_are_findings(tmp_path):
    """Exposed communication and launch-bound time are findings that add up a step's windows."""
    run = Windows(tmp_path)
    events = []
    for turn in range(10):
        at = turn * 1000
        events += kernel("gemm", at, 300, launch=at - 1)
        events += kernel("ncclDevKernel_AllGather", at + 700, 200, launch=at + 690)
    file, _ = run.add(text_of(events)), run.add(text_of(events), phase="backward")

    first, second = device_findings(device_of(run.read()))

    assert re.search(r"for the host .* 49% of backward and update", first.title)
    assert re.search(r"exposed communication.* 20% of backward and update", second.title)
    assert second.seconds == pytest.approx(4e-3)
    assert (second.steps, second.where) == ((1,), ("actor 0/2", "1/update", file))


@pytest.mark.parametrize(("usual_s", "found_s"), [(0.5, [0.2]), (0.35, []), (1.2, [0.63])])
def test_clean_steps_bound_the_gain_of_a_faster_host(tmp_path, usual_s, found_s):
    """The gain of a faster host is at most a clean step's time without its kernels."""
    run = Driven(tmp_path)
    events = [kernel("gemm", turn * 1e5, 3e4, launch=turn * 1e5 - 1) for turn in range(10)]
    trace(tmp_path / "trace.json", *events)
    artifact = {"path": "trace.json", "kind": "trace", "format": "chrome-trace", "size": 1000}
    run.capture(run.process("actor", 0), 1, "update", (1, 1, 2.5), artifact=artifact)
    for step in range(1, 9):
        run.step(step, {"update": 1.0 if step == 1 else usual_s})

    analysis = analyse(rlprof.read(run.written()))

    assert [one.bound_s for one in analysis.findings] == pytest.approx(found_s, abs=1e-4)
    assert all(one.share == pytest.approx(one.seconds / usual_s) for one in analysis.findings)
    assert all(one.title in analysis.verdict for one in analysis.findings)


def test_requests_of_a_replica_are_summed_up(tmp_path):
    """Times to a stage are medians of the requests that reached it; preemptions are summed up."""

    def request(lane, at, queued, prefill, **args):
        place = {"ph": "X", "cat": "request", "tid": lane}
        made = [{**place, "name": f"request {lane}", "ts": at, "dur": 9e6, "args": args},
                {**place, "name": "queued", "ts": at, "dur": queued}]  # fmt: skip
        if prefill:
            first = at + queued + prefill
            made.append({**place, "name": "prefill", "ts": at + queued, "dur": prefill})
            made.append({**place, "name": "decode", "ts": first, "dur": 1})
        return made

    run = Windows(tmp_path)
    events = [
        *request(1, 0, 1e6, 1e6, preemptions=2),
        *request(2, 0, 3e6, 1e6, preemptions=0),
        *request(3, 0, 5e6, 0, unfinished="it went on"),
    ]
    run.add(text_of(events), role="rollout", replica=1, name="x_requests.trace.json.gz")

    (found,) = device_of(run.read()).requests

    assert (found.target, found.count, found.finished) == ("rollout replica 1", 3, 2)
    assert (found.queue_p50_s, found.first_token_p50_s) == (2.0, 3.0)
    assert (found.queue_p99_s, found.preemptions) == (pytest.approx(2.98), 2)


GOOD = rank_of(100)


@cases(
    "content, note",
    (GOOD[: len(GOOD) // 2], "is cut short"),
    (GOOD.replace(b'"ts": 1000,', b'"ts": 1000,,'), "events that cannot be read: 1 left out"),
    (None, "is not there"),
    (b'{"traceEvents": []}', "has no clock in its `rlprof` object"),
)
def test_a_damaged_trace_loses_no_other(tmp_path, content, note):
    """A damaged trace is noted, and its readable events and all other traces count."""
    run = Windows(tmp_path)
    file = run.add(content)
    run.add(GOOD, rank=1)

    found = device_of(run.read())

    *damaged, good = found.captures
    assert (good.target, good.notes) == (
        "actor 1/2", ("launched before the recording began: 10 of 20 device events",),
    )  # fmt: skip
    if damaged:
        assert note in damaged[0].notes
        assert damaged[0].device_events > 0
    else:
        assert found.notes == (f"{file}: {note}",)
