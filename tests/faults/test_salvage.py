"""`rlprof salvage` exports what killed processes left and reports losses."""

import os

import rlprof
from tests.faults.harness import TRAIN
from tests.faults.told import assert_exported, captures
from tests.waiting import wait_until


# failures.md: salvaged
def test_a_trace_that_was_cut_is_repaired(lab):
    """Salvage repairs a torch trace that was cut as partial and makes all others whole."""
    script = """
prof = open_session()
train(prof)
print("trained", flush=True)
time.sleep(600)
"""
    waits = {"faulty": {"hook": "export", "how": "wait", "at": 1}}

    def are_closed():
        (path,) = lab.runs.iterdir()
        return len([c for c in rlprof.read(path).captures if c.closed_ns is not None]) == 6

    def kill(child):
        wait_until(lambda: "trained" in child.out.read_text(), "training")
        wait_until(lambda: child.bare or (lab.reached() and are_closed()), "three closed windows")
        child.kill()
        if not child.bare:
            (lab.home / "go on").touch()

    told = lab.both(script, tool=["faulty", "torch"], tools=waits, act=kill)
    (raw,) = lab.scratch.rglob("step_000003+update+torch/raw/part-*.json")
    os.truncate(raw, raw.stat().st_size // 2)

    salvaged = lab.rlprof("salvage", told.run.path)

    run = rlprof.read(told.run.path)
    whole = [f"{s}/update {tool} whole" for s in (1, 2, 3) for tool in ("faulty", "torch")]
    assert len([row for row in told.captures if row.endswith("lost")]) >= 4
    assert salvaged.code == 0
    assert captures(run) == [*whole[:-1], "3/update torch partial"]
    assert any("the raw trace was cut" in note for note in run.captures[-1].notes)
    assert_exported(run)


# failures.md: salvaged
def test_raw_data_of_a_tool_that_hung_in_stop_are_salvaged(lab):
    """Salvage exports the raw data of a tool that hung in its stop."""
    hangs = {"anywhere": {"hook": "stop", "how": "sleep"}}
    told = lab.both(TRAIN, tool="anywhere", tools=hangs, limits={"stop_timeout_s": 2})
    salvaged = lab.rlprof("salvage", told.run.path)

    run = rlprof.read(told.run.path)
    assert (told.captures[1], salvaged.code) == ("2/update anywhere failed", 0)
    assert captures(run)[1].split()[2] in ("whole", "partial")
    assert_exported(run)
