"""A hook that never returns: cut where it can be, and where it cannot the manifest shows where.

A tool that runs anywhere in the process is given up when its time is over. What is called on the
working thread (every hook of a tool of a thread; of any tool the ranges) holds the step for ever,
and so does, wherever it is called, what holds the interpreter.
"""

from __future__ import annotations

import pytest

from tests.faults.harness import wait_for
from tests.faults.told import Told

pytestmark = pytest.mark.slow

TRAIN = """
with open_session() as prof:
    train(prof, between=lambda step: step == 1 and settle(prof, {captures}))
"""

LIMITS = {
    "configure_timeout_s": 3,
    "start_timeout_s": 2,
    "stop_timeout_s": 2,
    "export_timeout_s": 15,
}
"""More than any hook takes that does not hang, on a machine that does much else."""

LATE = "was not answered within"
AGAIN = "anywhere is not used again"
STOPPED = f"CaptureError: stop {LATE} stop_timeout_s 2; {AGAIN}; raw data are kept in SCRATCH"
REFUSED = "start: not started: configure was not answered within configure_timeout_s 3"

GIVEN_UP = {
    "configure": (
        ["failed", "failed", "failed"],
        [f"{step}/update anywhere: {REFUSED}" for step in (1, 2, 3)],
    ),
    "start": (
        ["whole", "failed", "failed"],
        [
            f"2/update anywhere: start: CaptureError: start {LATE} start_timeout_s 2; {AGAIN}",
            f"3/update anywhere: start: not started: start {LATE} start_timeout_s 2",
        ],
    ),
    "stop": (
        ["whole", "failed", "failed"],
        [
            f"2/update anywhere: stop: {STOPPED}",
            f"3/update anywhere: start: not started: stop {LATE} stop_timeout_s 2",
        ],
    ),
}
"""Hook that hangs → what becomes of the three windows, and what is said of them."""


# failures.md: not-answered
@pytest.mark.parametrize("hook", GIVEN_UP)
def test_a_tool_of_the_process_is_given_up(lab, hook):
    """The step goes on after the hook's time; the tool is not used again, others are."""
    states, notes = GIVEN_UP[hook]
    broken = {"anywhere": {"hook": hook, "how": "sleep"}}
    script = TRAIN.format(captures=2)

    told = lab.both(script, tool=["torch", "anywhere"], tools=broken, limits=LIMITS)

    assert told.captures == [
        row
        for step, state in enumerate(states, 1)
        for row in (f"{step}/update torch whole", f"{step}/update anywhere {state}")
    ]
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes == notes
    limit = f"{hook}_timeout_s"
    error = f"CaptureError: {hook} was not answered within {limit} {LIMITS[limit]}"
    said = f"{error}; {AGAIN}"
    problems = [f"actor 0/1: anywhere: configure: {said}"] if hook == "configure" else []
    assert told.problems == problems
    assert told.log == [f"anywhere.{hook}: {said}"]


EXPORTS = [("faulty", "sleep"), ("faulty", "hold"), ("faulty", "suspend"), ("anywhere", "sleep")]
"""Tool, what its export does."""


# failures.md: export-failed
def test_an_export_is_killed_at_its_deadline(lab):
    """Asleep, holding its interpreter, or suspended: the helper goes, the raw data stay."""
    script = TRAIN.format(captures=1)
    labs = [lab.within(f"{tool} {how}") for tool, how in EXPORTS]  # at once: most of it is waiting
    bare = lab.bare(script)
    children = [
        one.start(script, tool=tool, tools={tool: {"hook": "export", "how": how}}, limits=LIMITS)
        for one, (tool, how) in zip(labs, EXPORTS, strict=True)
    ]

    ended = [one.finish(child) for one, child in zip(labs, children, strict=True)]

    error = f"export: took longer than export_timeout_s {LIMITS['export_timeout_s']}; "
    error += "raw data are kept in SCRATCH"
    for one, child, end, (tool, _) in zip(labs, children, ended, EXPORTS, strict=True):
        told = Told(one, bare, end, child.pid)
        told.assert_harmless()
        assert told.captures == [
            f"{step}/update {tool} {state}"
            for step, state in enumerate(["whole", "failed", "whole"], 1)
        ]
        assert told.processes == ["actor 0/1 ended"]
        assert told.notes == [f"2/update {tool}: {error}"]
        assert told.problems == []
        assert told.log == [f"{tool}.{error}"]


HELD = [
    ("faulty", "sleep", "push"), ("anywhere", "sleep", "minibatch"),
    ("faulty", "hold", "start"), ("faulty", "hold", "stop"), ("anywhere", "hold", "start"),
]  # fmt: skip
"""Tool, what it does, hook: what nobody can cut in the training process."""


# failures.md: not-returned
@pytest.mark.parametrize(("tool", "how", "hook"), HELD)
def test_what_nobody_can_cut_holds_the_step_and_is_on_disk(lab, tool, how, hook):
    """Window and tool were on disk before; killed, it reads as lost, and those before as whole."""
    broken = {tool: {"hook": hook, "how": how}}
    script = TRAIN.format(captures=1)

    told = lab.both(script, tool=tool, tools=broken, limits=LIMITS, cut=1, act=kill(lab))

    assert told.captures == [f"1/update {tool} whole", f"2/update {tool} lost"]
    assert told.processes == ["actor 0/1 died"]
    assert told.notes == told.problems == told.log == []


# failures.md: not-returned
@pytest.mark.parametrize(
    ("tool", "hook"), [("faulty", "start"), ("faulty", "stop"), ("anywhere", "push")]
)
def test_a_hook_that_does_not_return_is_named(lab, tool, hook):
    """The helper thread sees the step wait, and says once for which hook of which tool."""
    broken = {tool: {"hook": hook, "how": "sleep"}}
    script = TRAIN.format(captures=2)

    told = lab.both(
        script, tool=["torch", tool], tools=broken, limits=LIMITS, cut=1,
        act=kill(lab, "has not returned"),
    )  # fmt: skip

    assert told.captures == [
        "1/update torch whole",
        f"1/update {tool} whole",
        "2/update torch lost",
        f"2/update {tool} failed",
    ]
    assert told.processes == ["actor 0/1 died"]
    assert told.problems == []
    for said, who in (
        (told.notes, f"2/update {tool}: {hook}: "),
        (told.log, f"{tool}.{hook} hangs: "),
    ):
        assert [who] == [line.partition("has not returned for ")[0] for line in said]


# failures.md: not-returned
@pytest.mark.parametrize(
    ("how", "logged", "said"),
    [("sleep", "has not returned", "has not returned for "), ("hold", "", "never returned")],
)
def test_a_configure_that_nobody_can_cut_holds_the_opening(lab, how, logged, said):
    """Which tool it was is on disk before; one that sleeps is named while it does."""
    broken = {"faulty": {"hook": "configure", "how": how}}
    script = TRAIN.format(captures=1)

    told = lab.both(
        script, tool="faulty", tools=broken, limits=LIMITS, cut=0, act=kill(lab, logged)
    )

    assert told.captures == []
    assert told.processes == ["actor 0/1 died"]
    (problem,) = told.problems
    assert problem.startswith(f"actor 0/1: faulty: configure: {said}")


def kill(lab, said=""):
    """Return what kills a child that hangs in a hook, once log and manifest hold *said*."""

    def act(child):
        wait_for(lab.reached, "the hook that hangs")
        for file in (child.err, *lab.runs.rglob("manifest/*")):
            wait_for(lambda file=file: said in file.read_text(), said)
        child.kill()

    return act
