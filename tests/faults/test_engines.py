"""A failing engine or engine plugin harms neither training nor its windows."""

import signal
from pathlib import Path

import rlprof
from tests.cases import cases
from tests.faults.told import captures

TRAIN = """
from mini_engine import Engine

def rollout(step):
    print("state text", step, *engine.generate(["1 + 1 ="], max_tokens=4), flush=True)
    {also}

with Engine(profiler=True) as engine, open_session(role="actor") as prof:
    prof.attach(engine)
    train(prof, rollout=rollout, between=lambda step: step == 1 and settle(prof, 2))
"""

LIMITS = {"start_timeout_s": 2, "stop_timeout_s": 2}


def given(engine="moody", **options):
    """Return a config that records an engine's rollouts and the actor's updates."""
    rollout = {"engine": engine, "phases": ["rollout"], "tool": []}
    roles = {"actor": {"phases": ["update"]}, "rollout": rollout}
    return {"roles": roles, "engines": {engine: options}, "limits": LIMITS}


def rows(states, engine="moody"):
    """Return the expected `Told.captures`, in which the actor's own windows are whole."""
    return [
        row
        for step, state in enumerate(states, 1)
        for row in (f"{step}/rollout {engine} {state}", f"{step}/update faulty whole")
    ]


# failures.md: hook-raised, not-answered
@cases(
    "hook, how, states, error",
    ("configure", "raise", ["failed"] * 3, "RuntimeError: configure went wrong"),
    ("stop", "raise", ["whole", "partial", "whole"], "RuntimeError: stop went wrong"),
    ("stop", "sleep", ["whole", "failed", "failed"], f"stop_timeout_s {LIMITS['stop_timeout_s']}"),
)
def test_a_failing_hook_of_an_engine_costs_its_own_captures(lab, hook, how, states, error):
    """A failing or hanging hook of an engine costs its own captures; the actor's are whole."""
    told = lab.both(TRAIN.format(also=""), model="floats", **given(hook=hook, how=how))

    told.assert_tells(rows(states))
    assert any(error in note for note in told.notes)
    assert ({note.split()[1] for note in told.notes}, len(told.log)) == ({"moody:"}, 1)
    assert told.log[0].startswith(f"moody.{hook}: ")
    assert error in told.log[0]


# failures.md: engine-gone
def test_an_engine_that_was_restarted_is_recorded_again(lab):
    """An engine that was killed, restarted and attached again is recorded again."""
    script = """
from mini_engine import Engine

def rollout(step):
    print("state text", step, *engine.generate(["1 + 1 ="], max_tokens=4), flush=True)
    if step == 2:
        engine.process.kill()
        engine.process.wait()

def between(step):
    if step == 1:
        settle(prof, 2)
    if step == 2:
        global engine
        engine.close()
        engine = Engine(profiler=True)
        prof.attach(engine)

engine = Engine(profiler=True)
with open_session(role="actor") as prof:
    prof.attach(engine)
    train(prof, rollout=rollout, between=between)
engine.close()
"""
    told = lab.both(script, model="floats", **given("mini"))

    told.assert_tells(rows(["whole", "failed", "whole"], "mini"))
    assert {"2/rollout"} == {note.split()[0] for note in told.notes}
    assert any("the engine is gone" in note for note in told.notes)


# failures.md: engine-gone, salvage-tried
def test_a_trainer_that_is_killed_leaves_no_engine_behind(lab):
    """A killed trainer leaves no engine; the capture is lost, and salvage finds no data."""
    also = "if step == 2: os.kill(os.getpid(), signal.SIGKILL)"

    told = lab.both(TRAIN.format(also=also), model="floats", **given("mini"))
    salvaged = lab.rlprof("salvage", told.run.path)
    again, shown = (lab.rlprof(name, told.run.path) for name in ("salvage", "ls"))

    run = rlprof.read(told.run.path)
    assert told.real.code == -signal.SIGKILL
    assert told.captures == [*rows(["whole"], "mini"), "2/rollout mini lost"]
    assert (salvaged.code, again.out[:18]) == (0, "nothing to salvage")
    assert "nothing is left to salvage; 1 of 1 had left no data" in salvaged.out
    assert run.captures[-1].notes[-1].startswith("salvage was tried: the window was never closed, ")
    assert "rlprof salvage" not in shown.out
    assert not Path(run.captures[-1].scratch).exists()
    assert captures(run) == told.captures
