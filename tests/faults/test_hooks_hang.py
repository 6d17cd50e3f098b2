"""A hook that never returns is given up if possible; otherwise the manifest names it."""

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
"""Longer than any hook takes that does not hang, on a busy machine."""

GIVEN_UP = {
    "configure": ["failed", "failed", "failed"],
    "start": ["whole", "failed", "failed"],
    "stop": ["whole", "failed", "failed"],
}
"""Hook that hangs → states of the three windows."""


# failures.md: not-answered
@pytest.mark.parametrize("hook", GIVEN_UP)
def test_a_tool_of_the_process_is_given_up(lab, hook):
    """A tool with its own thread is given up after the hook's timeout; other tools record on."""
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
def test_a_window_whose_hook_holds_the_gil_reads_as_lost(lab, tool, hook):
    """A window whose hook holds the GIL until the process is killed reads as lost."""
    broken = {tool: {"hook": hook, "how": "hold"}}
    script = SETTLED.format(captures=1)

    told = lab.both(script, tool=tool, tools=broken, limits=LIMITS, cut=1, act=kill(lab))

    told.assert_tells(rows([tool], tool, ["whole", "lost"]), "actor 0/1 died", **NOTHING)


# failures.md: not-returned
@pytest.mark.parametrize(("tool", "hook"), [("faulty", "start"), ("anywhere", "push")])
def test_a_hook_that_does_not_return_is_named(lab, tool, hook):
    """The log and the capture's notes name a hook that hangs once, with its tool."""
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
def test_a_configure_that_never_returns_is_named(lab, how, logged, said):
    """A configure that never returns is a problem of the run that names the tool."""
    broken = {"faulty": {"hook": "configure", "how": how}}
    script = SETTLED.format(captures=1)

    told = lab.both(
        script, tool="faulty", tools=broken, limits=LIMITS, cut=0, act=kill(lab, logged)
    )

    told.assert_tells([], "actor 0/1 died")
    (problem,) = told.problems
    assert problem.startswith(f"actor 0/1: faulty: configure: {said}")


def kill(lab, said=""):
    """Return a function that kills a hanging child once log and manifest contain *said*."""

    def act(child):
        wait_until(lab.reached, "the hook that hangs")
        for file in (child.err, *lab.runs.rglob("manifest/*")):
            wait_until(lambda file=file: said in file.read_text(), said)
        child.kill()

    return act
