"""A hook that raises or crashes costs one capture, and the manifest names the cause."""

import signal

import pytest

from tests.cases import cases
from tests.faults.harness import SETTLED, TRAIN
from tests.faults.told import rows

OUTCOMES = {
    "configure": ["failed", "failed", "failed"],
    "start": ["whole", "failed", "whole"],
    "push": ["whole", "partial", "whole"],
    "stop": ["whole", "partial", "whole"],
    "export": ["whole", "failed", "whole"],
}
"""Hook that fails in step 2 → states of the windows of steps 1, 2 and 3."""

STRICT = {hook: states[:2] for hook, states in OUTCOMES.items()} | {"configure": []}
"""The same with strict: true, where step 2 is the last."""

TOOLS = {"faulty": ("torch", ["torch", "faulty"]), "anywhere": ("floats", ["anywhere"])}
"""Tool that fails, on the thread or anywhere → its model, and all tools."""


# failures.md: hook-raised, export-failed
@cases(
    "tool, hook, strict",
    *(("faulty", hook, False) for hook in OUTCOMES),
    ("anywhere", "start", False),
    ("faulty", "export", True),  # it runs in another process, so strict cannot raise it
)
def test_a_hook_that_raises_costs_its_own_capture(lab, hook, tool, strict):
    """A hook that raises costs its own capture; note and log name it, and all else goes on."""
    model, tools = TOOLS[tool]

    told = lab.both(TRAIN, model=model, tool=tools, tools={tool: {"hook": hook}}, strict=strict)

    error = f"{hook}: RuntimeError: {hook} went wrong"
    notes = [f"2/update {tool}: {error}" + "; raw data are kept in SCRATCH" * (hook == "export")]
    if hook == "configure":
        notes = [f"{step}/update {tool}: start: not started: {error}" for step in (1, 2, 3)]
    problems = [f"actor 0/1: {tool}: {error}"] * (hook == "configure")
    told.assert_tells(rows(tools, tool, OUTCOMES[hook]), notes=notes, problems=problems)
    assert len(told.log) == 1
    assert f"{tool}.{error}" in told.log[0]


# failures.md: strict
@cases("tool, hook", ("faulty", "configure"), ("faulty", "start"), ("anywhere", "stop"))
def test_strict_passes_the_error_on(lab, hook, tool):
    """With strict: true, the hook's error ends the job; captures until then are exported."""
    tools, broken = ["torch", tool], {tool: {"hook": hook}}
    done = 0 if hook == "configure" else 1

    told = lab.both(TRAIN, tool=tools, tools=broken, strict=True, cut=done)

    assert told.real.code == 1
    assert told.real.err.splitlines()[-1] == f"RuntimeError: {hook} went wrong"
    told.assert_tells(rows(tools, tool, STRICT[hook]))
    assert any(f"{hook} went wrong" in note for note in told.notes) == bool(done)


# failures.md: crash
@pytest.mark.parametrize(("tool", "hook"), [("faulty", "start"), ("anywhere", "stop")])
def test_a_tool_that_crashes_ends_training(lab, tool, hook):
    """A tool that crashes ends training; its window is lost, and earlier ones are whole."""
    broken = {tool: {"hook": hook, "how": "crash"}}

    told = lab.both(SETTLED.format(captures=1), model="floats", tool=tool, tools=broken, cut=1)

    assert told.real.code == -signal.SIGSEGV
    told.assert_tells(rows([tool], tool, ["whole", "lost"]), "actor 0/1 died", problems=[])
