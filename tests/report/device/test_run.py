"""The device figures of a run: windows, roles, ranks beside each other, requests, findings."""

from __future__ import annotations

import pytest

from rlprof_report.device import LateRank, device_findings, device_of, json_bytes
from tests.report.device.made import Windows, kernel, operator, text_of


def rank_of(wait, *, launch=None):
    """Return a trace of a rank whose collectives take *wait* us."""
    events = []
    for turn in range(10):
        at = turn * 1000
        events += kernel("gemm", at, 300, launch=None if launch is None else at - launch)
        events += kernel("ncclDevKernel_AllReduce_Sum", at + 900 - wait, wait, launch=at + 1)
    return text_of(events)


def test_each_trace_is_shown_and_added_to_its_role(tmp_path):
    """Seconds of a role are those of its traces together; names keep all their calls."""
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
    """The others wait for it: it is named, with how much longer their collectives take."""
    run = Windows(tmp_path)
    for step in (1, 2):
        for rank in range(2):
            run.add(rank_of(100 if rank else 500), rank=rank, step=step)

    found = device_of(run.read())
    findings = device_findings(found)

    assert found.late[:2] == (
        LateRank("actor", "1/update", 1, pytest.approx(4e-3), 10, 10, 0.0),
        LateRank("actor", "2/update", 1, pytest.approx(4e-3), 10, 10, 0.0),
    )
    assert [one.late_s for one in found.late[2:]] == [0.0, 0.0]
    (late,) = [one for one in findings if "comes last" in one.title]
    assert late.title == "actor: rank 1 comes last to collectives; the others wait for it."
    assert late.seconds == pytest.approx(4e-3)
    assert late.evidence[0] == "It was last in 20 of 20 collectives, in 2 windows."


def test_ranks_that_are_late_by_turns_are_no_finding(tmp_path):
    """A rank is blamed only where it is last in all windows; a replica is no rank of another."""
    run, replicas = Windows(tmp_path / "a"), Windows(tmp_path / "b")
    for step in (1, 2):
        for rank in range(2):
            run.add(rank_of(100 if rank == step % 2 else 500), rank=rank, step=step)
            name = {"role": "rollout", "rank": rank * 2, "replica": rank}
            replicas.add(rank_of(100 if rank else 500), step=step, **name)

    found = device_findings(device_of(run.read()))

    assert [one for one in found if "comes last" in one.title] == []
    assert device_of(replicas.read()).late == ()


def test_exposed_communication_and_a_slow_host_are_findings(tmp_path):
    """Both are told with their share of the windows, the larger first, and where to look."""
    run = Windows(tmp_path)
    events = []
    for turn in range(10):
        at = turn * 1000
        events += kernel("gemm", at, 300, launch=at - 1)
        events += kernel("ncclDevKernel_AllGather", at + 700, 200, launch=at + 690)
    file = run.add(text_of(events))

    first, second = device_findings(device_of(run.read()))

    assert first.title == (
        "actor: the device waits for the host to launch kernels for 48% of the recorded windows."
    )
    assert second.title == (
        "actor: exposed communication, with no compute meanwhile, takes 20% of the recorded "
        "windows."
    )
    assert second.seconds == pytest.approx(2e-3)
    assert (second.steps, second.where) == ((1,), ("actor 0/2", "1/update", file))


def test_requests_of_a_replica_are_summed_up(tmp_path):
    """Queue and first token are those of requests that got so far; preemptions are added."""

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

    assert (found.role, found.replica, found.count, found.finished) == ("rollout", 1, 3, 2)
    assert (found.queue_p50_s, found.first_token_p50_s) == (2.0, 3.0)
    assert found.queue_p99_s == pytest.approx(2.98)
    assert found.preemptions == 2


GOOD = rank_of(100)


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (GOOD[: len(GOOD) // 2], "is cut short"),
        (GOOD.replace(b'"ts": 1000,', b'"ts": 1000,,'), "events that cannot be read: 1 left out"),
        (None, "is not there"),
        (b'{"traceEvents": []}', "has no clock in its `rlprof` object"),
    ],
)
def test_a_damaged_trace_loses_no_other(tmp_path, content, note):
    """What can be read of it counts; the loss is said with the trace, or with the run."""
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
