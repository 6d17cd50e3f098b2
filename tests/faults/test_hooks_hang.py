"""A hook that never returns is given up where possible; else the manifest names it."""

import pytest

from tests.faults.harness import SETTLED
from tests.faults.told import NOTHING, rows
from tests.waiting import wait_until

LIMITS = {
    "configure_timeout_s": 3,
    "start_timeout_s": 2,
    "stop_timeout_s": 2,
    "export_timeout_s": 15,
}
"""More than any hook takes that does not hang, on a machine that does much else."""

GIVEN_UP = {
    "configure": ["failed", "failed", "failed"],
    "start": ["whole", "failed", "failed"],
    "stop": ["whole", "failed", "failed"],
}
"""Hook that hangs → what becomes of the three windows."""


# failures.md: not-answered
@pytest.mark.parametrize("hook", GIVEN_UP)
def test_a_tool_of_the_process_is_given_up(lab, hook):
    """The step goes on after the hook's time; the tool is not used again, others are."""
    broken = {"anywhere": {"hook": hook, "how": "sleep"}}
    script = SETTLED.format(captures=2)

    told = lab.both(script, tool=["torch", "anywhere"], tools=broken, limits=LIMITS)

    limit = f"{hook}_timeout_s"
    late = f"{hook} was not answered within {limit} {LIMITS[limit]}"
    log = [f"anywhere.{hook}: CaptureError: {late}; anywhere is not used again"]
    told.assert_tells(rows(["torch", "anywhere"], "anywhere", GIVEN_UP[hook]), log=log)
    assert [note for note in told.notes if late not in note] == []
    assert told.notes[-1] == f"3/update anywhere: start: not started: {late}"


# failures.md: not-returned
@pytest.mark.parametrize(("tool", "hook"), [("faulty", "stop"), ("anywhere", "start")])
def test_a_hook_that_holds_the_interpreter_is_on_disk(lab, tool, hook):
    """Window and tool were on disk before; killed, it reads as lost, and those before as whole."""
    broken = {tool: {"hook": hook, "how": "hold"}}
    script = SETTLED.format(captures=1)

    told = lab.both(script, tool=tool, tools=broken, limits=LIMITS, cut=1, act=kill(lab))

    told.assert_tells(rows([tool], tool, ["whole", "lost"]), "actor 0/1 died", **NOTHING)


# failures.md: not-returned
@pytest.mark.parametrize(("tool", "hook"), [("faulty", "start"), ("anywhere", "push")])
def test_a_hook_that_does_not_return_is_named(lab, tool, hook):
    """The helper thread sees the step wait, and says once for which hook of which tool."""
    broken = {tool: {"hook": hook, "how": "sleep"}}
    script = SETTLED.format(captures=2)

    told = lab.both(
        script, tool=["torch", tool], tools=broken, limits=LIMITS, cut=1,
        act=kill(lab, "has not returned"),
    )  # fmt: skip

    whole = ["1/update torch whole", f"1/update {tool} whole"]
    cut = ["2/update torch lost", f"2/update {tool} failed"]
    told.assert_tells([*whole, *cut], "actor 0/1 died", problems=[])
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
    script = SETTLED.format(captures=1)

    told = lab.both(
        script, tool="faulty", tools=broken, limits=LIMITS, cut=0, act=kill(lab, logged)
    )

    told.assert_tells([], "actor 0/1 died")
    (problem,) = told.problems
    assert problem.startswith(f"actor 0/1: faulty: configure: {said}")


def kill(lab, said=""):
    """Return what kills a child that hangs in a hook, once log and manifest hold *said*."""

    def act(child):
        wait_until(lab.reached, "the hook that hangs")
        for file in (child.err, *lab.runs.rglob("manifest/*")):
            wait_until(lambda file=file: said in file.read_text(), said)
        child.kill()

    return act
