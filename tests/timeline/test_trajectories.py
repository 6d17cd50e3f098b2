"""Trajectories on the timeline: each on a lane of its own, which is free again at its end."""

from __future__ import annotations

from tests.timeline.builder import NOW, Written


def lanes(written: Written) -> dict[str, list[str]]:
    """Return the names of the slices of each row, in their order; rows in theirs."""
    found = {written.threads[key]: [] for key in sorted(written.threads)}
    for event in sorted(written.events, key=lambda event: event["ts"]):
        found[written.threads[event["pid"], event["tid"]]].append(event["name"])
    return found


def loop(process, number, start, *, parent=None):
    """Write a trajectory of 100 ns with a turn and a request; return its id and the turn's."""
    ours = {"trajectory": number}
    at = NOW + start
    root = process.span("span", "trajectory", at, at + 100, parent=parent, **ours)
    turn = process.span("span", "turn", at + 10, at + 90, parent=root, turn=0, **ours)
    process.span("span", "request", at + 20, at + 40, parent=turn, **ours)
    return root, turn


def test_a_lane_is_reused_once_its_trajectory_has_ended(run, write) -> None:
    """There are as many lanes as trajectories at a time, and nothing else is on them."""
    process = run.process()
    rollout = process.span("phase", "rollout", NOW, NOW + 300)
    batch = process.span("span", "batch", NOW, NOW + 300, parent=rollout)
    for number, start in enumerate((0, 50, 100, 199)):
        loop(process, number, start, parent=batch)

    written = write()

    each = [[f"trajectory {number}", "turn", "request"] for number in range(4)]
    assert lanes(written) == {
        "phases": ["rollout"],
        "spans": ["batch"],
        "trajectories": each[0] + each[2],
        "trajectories 2": each[1] + each[3],
    }
    assert written.named("trajectory 2")["args"]["trajectory"] == 2


def test_what_a_trajectory_does_at_one_time_is_beside_its_lane(run, write) -> None:
    """Two tools at a time and a task that outlives its trajectory stay below the lane it has."""
    process = run.process()
    (root, turn), _ = loop(process, "a", 0), loop(process, "b", 30)
    for number, end in enumerate((80, 85)):
        tool = {"trajectory": "a", "tool": number}
        process.span("span", f"tool {number}", NOW + 50, NOW + end, parent=turn, **tool)
    late = process.span("span", "late", NOW + 95, NOW + 135, parent=root, trajectory="a")
    process.span("span", "later", NOW + 120, NOW + 130, parent=late, trajectory="a")
    loop(process, "c", 130)
    loop(process, "d", 140)

    written = write()

    each = {name: [f"trajectory {name}", "turn", "request"] for name in "abcd"}
    assert lanes(written) == {
        "trajectories": [*each["a"], "tool 1", *each["d"]],
        "trajectories 1.2": ["tool 0", "late", "later"],
        "trajectories 2": [*each["b"], *each["c"]],
    }


def test_what_is_there_of_a_trajectory_that_has_not_ended(run, write) -> None:
    """Its parts are on one lane, though it was killed in one: they say whose they are."""
    process = run.process()
    for start in (0, 100):
        for number, name in ((7, "turn"), (8, "request")):
            at, missing = NOW + start + number, 1000 + start + number
            process.span("span", name, at, at + 90, parent=missing, trajectory=number)
    process.span("span", "said by hand", NOW, NOW + 1000, trajectory=7)

    assert lanes(write()) == {
        "spans": ["said by hand"],
        "trajectories": ["turn", "turn"],
        "trajectories 2": ["request", "request"],
    }
